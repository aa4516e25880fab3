"""Conjunctions in both forms, factored and materialised: what pairs in an index cost, and what they give.

    python benchmarks/pairs.py [--documents 50000] [--pair-terms 16 32 64] [--queries 100] [--rounds 5] [--threads N]

Builds an index of synthetic SPLADE-shaped documents without pairs, and for every N one with the pairs of each
document's N heaviest terms, each with --optimize. The same conjunctions of 5 + 5 terms then run on all of them in turn:
factored on the index without pairs, materialised on the others. A line gives the indexing rate, the bytes of the index,
the most memory of the build, the median latencies, and the share of the factored form's first ten hits that the
materialised form finds: it misses a document whose pair is not among its heaviest terms.

Impacts of synthetic documents do not depend on the terms. In real documents the terms of a query are often the heavy
terms of its relevant documents, so more of these are found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from index import FILES_A_THREAD, ours_command
from measuring import folder_bytes, in_child, run_command, timed
from reporting import INDEXES, describe, environment, megabytes, table
from synthetic import queries, write_collection

from pyserini_compneg.compose import lowered, to_json
from pyserini_compneg.compose.lowering import FACTORED, MATERIALISED
from pyserini_compneg.lucene import ImpactReader

TOP = 10
HITS = (TOP, 1000)
FOUND = "of factored's top 10"


def build(folder: Path, collection: Path, documents: int, pair_terms: int, threads: int) -> list[str]:
    """Builds an index; returns its rate, its size and the memory that it took, to be read."""
    options = ["--optimize", *(["--pair-terms", str(pair_terms)] if pair_terms else [])]
    index = folder / str(pair_terms)
    done = run_command(ours_command(collection, index, threads, *options))
    size = folder_bytes(index) / documents
    return [f"{documents / done.seconds:,.0f}", f"{size:,.0f}", megabytes(done.peak_bytes)]


def search(folder: Path, pair_terms: Sequence[int], query_count: int, rounds: int) -> list[list[str]]:
    """Searches all indexes; returns for each its median latencies and the share of hits that it finds, to be read."""
    readers = [ImpactReader(folder / str(number)) for number in pair_terms]
    nodes = [query.node for query in queries(query_count)["cpt"]]
    lines = [
        [json.dumps(to_json(lowered(node, MATERIALISED if number else FACTORED))) for node in nodes]
        for number in pair_terms
    ]
    medians = []
    for k in HITS:
        searches = {
            str(number): [partial(reader.search, [line], k) for line in asked]
            for number, reader, asked in zip(pair_terms, readers, lines, strict=True)
        }
        medians.append([f"{np.median(taken.wall):.2f}" for taken in timed(searches, rounds).values()])
    found = [reader.search(asked, TOP) for reader, asked in zip(readers, lines, strict=True)]
    wanted = sum(len(ranking.docids) for ranking in found[0])
    shares = [
        sum(len({*a.docids} & {*b.docids}) for a, b in zip(found[0], other, strict=True)) / wanted for other in found
    ]
    for reader in readers:
        reader.close()
    return [[*latencies, f"{share:.1%}"] for *latencies, share in zip(*medians, shares, strict=True)]


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--pair-terms", type=int, nargs="+", default=[16, 32, 64], metavar="N")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    pair_terms = [0, *sorted(set(args.pair_terms))]
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as name:
        folder = Path(name)
        collection = write_collection(folder / "documents", args.documents, FILES_A_THREAD * args.threads)
        built = [build(folder, collection, args.documents, number, args.threads) for number in pair_terms]
        searched = in_child(search, folder, pair_terms, args.queries, args.rounds)
    forms = ["factored, no pairs", *(f"materialised, {number} terms" for number in pair_terms[1:])]
    rows = [[form, *costs, *found] for form, costs, found in zip(forms, built, searched, strict=True)]
    heads = ["form", "documents/s", "bytes/document", "build's memory", *(f"k={k}, median ms" for k in HITS), FOUND]
    print(f"{args.documents:,} documents, {args.queries} queries, {args.rounds} rounds, {args.threads} threads")
    print(f"{describe(environment())}\n\n{table(heads, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
