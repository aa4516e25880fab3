"""Conjunctions in both forms, factored and materialised: what pairs in an index cost, and what they give.

    python benchmarks/pairs.py [--documents 50000] [--pair-terms 16 32 64] [--queries 100] [--rounds 5] [--threads N]

Builds an index of synthetic SPLADE-shaped documents without pairs, and one with the pairs of each document's N heaviest
terms for every N, each by the whole command with --optimize, and runs the same conjunctions of 5 + 5 terms: factored on
the index without pairs, materialised on the others, on all in turn. A line gives the indexing rate, the bytes of the
index, the most memory of the build, the median and the 90th percentile latency, and the share of the factored form's
first ten hits that the materialised one finds: it misses a document whose pair is not among its heaviest terms. Writes
runs/pairs.json.

Impacts of synthetic documents do not depend on the terms. In real ones the terms of a query are often the heavy ones of
the documents that it is for, so more of these are found.
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
from typing import Any

import numpy as np
from index import FILES_A_THREAD, ours_command
from measuring import folder_bytes, in_child, run_command, timed
from reporting import INDEXES, describe, environment, megabytes, table, write_json
from synthetic import queries, write_collection

from pyserini_compneg.commands.flags import count
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.compose import lowered, to_json
from pyserini_compneg.compose.lowering import FACTORED, MATERIALISED
from pyserini_compneg.lucene import ImpactReader

TOP = 10
HITS = (TOP, 1000)


def build(folder: Path, collection: Path, documents: int, pair_terms: int, threads: int) -> dict[str, float]:
    """Builds an index; returns its rate and size."""
    options = ["--optimize", *(["--pair-terms", str(pair_terms)] if pair_terms else [])]
    index = folder / str(pair_terms)
    done = run_command(ours_command(collection, index, threads, *options))
    return {
        "documents_per_second": documents / done.seconds,
        "bytes_per_document": folder_bytes(index) / documents,
        "peak_bytes": done.peak_bytes,
    }


def search(folder: Path, pair_terms: Sequence[int], query_count: int, rounds: int) -> list[dict[str, Any]]:
    """Searches all indexes; returns latencies and shares, for each number of pair terms."""
    readers = {number: ImpactReader(folder / str(number)) for number in pair_terms}
    nodes = [query.node for query in queries(query_count)["cpt"]]
    lines = {
        number: [json.dumps(to_json(lowered(node, MATERIALISED if number else FACTORED))) for node in nodes]
        for number in pair_terms
    }
    results: list[dict[str, Any]] = [{"share_of_top_10": share} for share in _shares(readers, lines)]
    for k in HITS:
        searches = {
            str(number): [partial(reader.search, [line], k) for line in lines[number]]
            for number, reader in readers.items()
        }
        for result, taken in zip(results, timed(searches, rounds).values(), strict=True):
            median, high = np.quantile(np.median(taken, axis=0), (0.5, 0.9)).tolist()
            result[f"k={k}"] = {"median_ms": median, "p90_ms": high}
    for reader in readers.values():
        reader.close()
    return results


def _shares(readers: dict[int, ImpactReader], lines: dict[int, list[str]]) -> list[float]:
    """For each index the share of the first index's first hits that it finds among its own."""
    first = {number: [{*found.docids} for found in readers[number].search(lines[number], TOP)] for number in readers}
    wanted = next(iter(first.values()))
    total = sum(map(len, wanted))
    return [sum(len(a & b) for a, b in zip(wanted, found, strict=True)) / total for found in first.values()]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=count, default=50_000)
    parser.add_argument("--pair-terms", type=count, nargs="+", default=[16, 32, 64], metavar="N")
    parser.add_argument("--queries", type=count, default=100)
    parser.add_argument("--rounds", type=count, default=5)
    parser.add_argument("--threads", type=count, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    pair_terms = [0, *sorted(set(args.pair_terms))]
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as name:
        folder = Path(name)
        collection = write_collection(folder / "documents", args.documents, FILES_A_THREAD * args.threads)
        built = [build(folder, collection, args.documents, number, args.threads) for number in pair_terms]
        searched = in_child(search, folder, pair_terms, args.queries, args.rounds)
    figures = [
        {"pair_terms": number, **costs, **gains}
        for number, costs, gains in zip(pair_terms, built, searched, strict=True)
    ]
    report(figures, {name: getattr(args, name) for name in ("documents", "queries", "rounds", "threads")})


def report(figures: Sequence[dict[str, Any]], settings: dict[str, int]) -> None:
    """Prints and writes what was measured."""
    values = environment()
    rows = [
        [
            f"materialised, {line['pair_terms']} terms" if line["pair_terms"] else "factored, no pairs",
            f"{line['documents_per_second']:,.0f}",
            f"{line['bytes_per_document']:,.0f}",
            megabytes(line["peak_bytes"]),
            *(f"{line[f'k={k}'][name]:.2f}" for k in HITS for name in ("median_ms", "p90_ms")),
            f"{line['share_of_top_10']:.1%}",
        ]
        for line in figures
    ]
    latencies = [f"k={k}, {name} ms" for k in HITS for name in ("median", "p90")]
    print(f"{', '.join(f'{value:,} {name}' for name, value in settings.items())}; {describe(values)}\n")
    print(table(["form", "documents/s", "bytes/document", "build's memory", *latencies, "of factored's top 10"], rows))
    print(write_json("pairs.json", {"environment": values, "settings": settings, "indexes": figures}))


if __name__ == "__main__":
    sys.exit(main())
