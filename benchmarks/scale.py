"""How search, indexes and memory grow with the collection, beside a full scan.

    python benchmarks/scale.py [--sizes 30000 300000 1000000 3000000] [--queries 100] [--rounds 3] [--threads N]
                               [--memory-gb 16]

For each size an index of synthetic SPLADE-shaped documents, merged to one segment, is built below indexes/. It stays
there, and the next call uses it again. Queries of 25 positive terms, of 25 positive and 20 negative ones, and
conjunctions of 5 + 5 terms then run on two engines in turn:

- ours; a latency includes writing and parsing the query as JSON, and the ids of all hits;
- a full scan with scipy, exact, in memory, for sizes that need at most --memory-gb.

Terms are independent of each other, which is the worst case; ``peers.py`` has documents that are like real ones.

Our search has to find what the full scan finds: for vectors the same documents and scores, for conjunctions the same
scores up to rounding. Otherwise the script ends with an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from brute_force import BruteForce, TopDocuments
from measuring import folder_bytes, in_child, peak_bytes, timed
from reporting import INDEXES, describe, environment, megabytes, table
from synthetic import ENCODER, JsonWriter, Query, blocks, queries

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader, Ranking
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.processors import processors

KINDS = ("positive", "signed", "cpt")
HITS = (10, 1000)

_COMPILING_SECONDS = 15.0
"""How long our search runs before anything else does, so that Java has compiled it before the first kind is timed."""

_ROUNDING = 1e-6
"""How far the scores of conjunctions may be apart, relatively: both sides round roots, and scores to float."""


class Latency(NamedTuple):
    """How fast one engine answers the queries of a kind."""

    kind: str
    hits: int
    engine: str
    documents: int
    median: float
    p99: float
    remark: str


class Measured(NamedTuple):
    """What was measured at one size: the cells of the table of indexes, by their headers, and all latencies."""

    cells: dict[str, str]
    latencies: list[Latency]


def build(index: Path, documents: int, threads: int) -> dict[str, str]:
    """Builds the index, merged to one segment, from blocks that are generated on the way."""
    writer = JsonWriter()
    start = time.perf_counter()
    with ImpactIndexer(index, ENCODER, threads=threads, optimize=True, existing="overwrite") as indexer:
        for block in blocks(documents):
            indexer.add_lines(writer.lines(block), ENCODER, block.first + 1)
        indexer.drain()
        added = time.perf_counter()
    return {
        "documents/s": f"{documents / (added - start):,.0f}",
        "merge s": f"{time.perf_counter() - added:.0f}",
        "build's memory": megabytes(peak_bytes()),
    }


def search(index: Path, documents: int, options: Namespace) -> Measured:
    """Times all engines, and compares what they find."""
    asked = {kind: found for kind, found in queries(options.queries).items() if kind in KINDS}
    start = time.perf_counter()
    reader = ImpactReader(index)
    _rankings(reader, asked["positive"][:1], HITS[0])
    cells = {"bytes/document": f"{folder_bytes(index) / documents:,.0f}"}
    cells["first hit s"] = f"{time.perf_counter() - start:.1f}"
    warm = time.perf_counter() + _COMPILING_SECONDS
    while time.perf_counter() < warm:
        for kind in KINDS:
            for hits in HITS:
                _rankings(reader, asked[kind], hits)
    cells["search's memory"] = megabytes(peak_bytes())
    scan = None
    if BruteForce.needed_bytes(documents) <= 1e9 * options.memory_gb:
        scan = BruteForce(documents)
        cells |= {"full scan's memory": megabytes(scan.resident_bytes), "its load s": f"{scan.load_seconds:.1f}"}
    latencies = [
        latency
        for kind in KINDS
        for hits in HITS
        for latency in _compare(kind, hits, asked[kind], documents, options.rounds, reader, scan)
    ]
    reader.close()
    return Measured(cells, latencies)


def _rankings(reader: ImpactReader, asked: Sequence[Query], hits: int) -> list[Ranking]:
    return reader.search([query.node for query in asked], hits)


def _compare(
    kind: str,
    hits: int,
    asked: Sequence[Query],
    documents: int,
    rounds: int,
    reader: ImpactReader,
    scan: BruteForce | None,
) -> list[Latency]:
    """Times each engine that can answer the queries of a kind."""
    before = reader.work_done()
    own = _rankings(reader, asked, hits)
    after = reader.work_done()
    read = (after.postings_read - before.postings_read) / len(asked)
    scored = (after.documents_scored - before.documents_scored) / len(asked)
    remarks = {"ours": f"{scored:,.0f} scored, {read:,.0f} postings read"}
    searches: dict[str, list[Callable[[], Any]]] = {
        "ours": [partial(reader.search, [query.node], hits) for query in asked]
    }
    if scan:
        searches["full scan"] = [partial(scan.search, query.node, hits) for query in asked]
        for number, (query, ranking) in enumerate(zip(asked, own, strict=True)):
            _check(f"{kind} query {number}, k={hits}", query, ranking, scan.search(query.node, hits))
    return [
        Latency(kind, hits, name, documents, *np.quantile(taken.wall, (0.5, 0.99)).tolist(), remarks.get(name, ""))
        for name, taken in timed(searches, rounds).items()
    ]


def _check(name: str, query: Query, own: Ranking, exact: TopDocuments) -> None:
    """Vectors give the same ids, and scores to the last bit; conjunctions the same scores, up to rounding."""
    scores = np.array(own.scores, dtype=np.float32)
    if isinstance(query.node, Linear):
        same = own.docids == exact.docids and np.array_equal(scores, exact.scores)
    else:
        same = len(scores) == len(exact.scores) and np.allclose(scores, exact.scores, rtol=_ROUNDING, atol=0)
    if not same:
        raise CompNegError(f"{name}: our search does not find what a full scan finds")


def report(measured: dict[int, Measured]) -> str:
    """The tables of indexes, of latencies, and of their growth."""
    heads = list(dict.fromkeys(head for size in measured.values() for head in size.cells))
    indexes = [
        [f"{documents:,}", *(size.cells.get(head, "") for head in heads)] for documents, size in measured.items()
    ]
    latencies = [latency for size in measured.values() for latency in size.latencies]
    latencies.sort(key=lambda one: (one.hits, KINDS.index(one.kind), one.engine != "ours", one.engine, one.documents))
    rows, curves = [], {}
    for one in latencies:
        name = f"{one.kind}, {one.engine}, k = {one.hits}"
        rows.append([name, f"{one.documents:,}", f"{one.median:.2f}", f"{one.p99:.2f}", one.remark])
        curves.setdefault(name, {})[one.documents] = one.median
    parts = [table(["documents", *heads], indexes), table(["query, engine", "documents", "median ms", "p99", ""], rows)]
    if len(measured) > 1:
        parts.append("Growth: latency ~ n^b for n documents, by least squares of logarithms")
        growth = [
            [name, f"{np.polyfit(np.log(list(curve)), np.log(list(curve.values())), 1)[0]:.2f}"]
            for name, curve in curves.items()
            if len(curve) > 1
        ]
        parts.append(table(["query, engine", "b"], growth))
    return "\n\n".join(parts)


def main() -> int:
    """Measures every size, and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [30_000, 300_000, 1_000_000, 3_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, metavar="N")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processors())
    parser.add_argument("--memory-gb", type=int, default=16, help="the most that the full scan may need")
    options = parser.parse_args()
    INDEXES.mkdir(exist_ok=True)
    measured = {}
    for documents in sorted(set(options.sizes)):
        index = INDEXES / f"scale-{documents}"
        print(f"{documents:,} documents", file=sys.stderr, flush=True)
        exists = (index / MANIFEST_NAME).exists()
        built = {} if exists else in_child(build, index, documents, options.threads)
        searched = in_child(search, index, documents, options)
        measured[documents] = searched._replace(cells=built | searched.cells)
    print(f"{options.queries} queries, {options.rounds} rounds, {options.threads} threads to index, 1 to search")
    print(f"{describe(environment())}\n\n{report(measured)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
