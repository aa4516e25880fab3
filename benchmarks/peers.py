"""Our search beside other engines for learned sparse vectors, on the same real-shaped documents and queries.

    python benchmarks/peers.py --collection mixed/mixed.jsonl.gz --encoder MODEL --impact-scale 51.2 --topics TOPICS
                               [--sizes 33000 100000] [--queries 40] [--rounds 5] [--engines Qdrant BMP] [--signed]

The collection is what ``mixed.py`` writes; each size is that of its first documents. All sides get the same whole
numbers as impacts, and answer whole calls from Python on one thread:

- ours, in the index that ``index`` makes, and the plain one of ``index --no-reorder``: ``search`` of composed queries;
- stock Lucene on the plain index, without ids;
- Qdrant Edge (the package ``qdrant-edge-py``), exact;
- BMP (Mallia, Suel and Tonellotto, SIGIR 2024; ``bmp``), in the order of our index; it stores impacts modulo 256, so
  larger ones are cut to 255;
- PISA (``pyterrier-pisa``), exact, with its default algorithm;
- Seismic (Bruch et al., SIGIR 2024; ``pyseismic-lsr``), approximate, with its documented settings, for 100,000
  documents at most, since its build takes minutes;
- kannolo's flat index, and splade-index: full scans.

Those that are not installed are left out. Other engines have no operators. A is the first operand of the topics of
``A NOT B``. ``--signed`` also asks A NOT B of the engines that take negative weights, and of ours OR, AND, ``cpt`` and
``damped``, beside the sum of all terms of both sides, an easier query, in the other engines.

Each query is put to one engine after the other, and the best of its rounds counts, in processor time of the whole
process. A line has the median and the 95th percentile; "ours / it", the median of the ratios of our default index to
the engine, query by query; the share of the hits that are right, which means that their exact scores are no lower than
the k-th best; and bytes a document. The table of builds has the processor time and the peak memory of a process that
only reads the collection and builds.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import folder_bytes
from peer_engines import OURS, PEERS, PLAIN, Ask, built, vectors
from reporting import describe, environment, megabytes, table
from stock import StockSearcher

from pyserini_compneg.compose import Linear, Operators, ScoringNode
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union, atoms
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics import read_topics

HITS = (10, 1000)
SEISMIC_DOCUMENTS = 100_000
STOCK = "stock Lucene"


class Form(NamedTuple):
    """The queries of a form, composed for ours, and the vectors that other engines are asked in their place."""

    nodes: list[ScoringNode]
    vectors: list[dict[str, float]]
    is_same: bool
    """Whether these are the same queries."""


def forms(options: argparse.Namespace, index: Path) -> dict[str, Form]:
    """The forms of queries that are asked, from the topics of two atoms."""
    expressions = [topic.expression for topic in read_topics(options.topics)]
    found: dict[str, Form] = {}
    with SignedImpactSearcher(index) as searcher:

        def linear(asked: Sequence[Expression]) -> list[dict[str, float]]:
            nodes = searcher.compose(asked, Operators("vanilla", "vanilla", "disentangled"))
            return [dict(node.weights) for node in nodes if isinstance(node, Linear)]

        for form, (kind, operators) in FORMS.items():
            asked = [one for one in expressions if isinstance(one, kind) and len(atoms(one)) == 2][: options.queries]
            if form == "A":
                asked = [Atom(atoms(one)[0]) for one in asked]
            is_same = form in ("A", "A NOT B")
            sums = asked if is_same else [Intersection(tuple(map(Atom, atoms(one)))) for one in asked]
            if form == "A" or options.signed:
                found[form] = Form(searcher.compose(asked, operators), linear(sums), is_same)
    return found


FORMS: dict[str, tuple[type[Expression], Operators]] = {
    "A": (Difference, Operators()),
    "A NOT B": (Difference, Operators(difference="disentangled")),
    "A OR B": (Union, Operators()),
    "A AND B": (Intersection, Operators()),
    "A AND B, cpt": (Intersection, Operators(intersection="cpt")),
    "A NOT B, damped": (Difference, Operators()),
}


def compare(options: argparse.Namespace, documents: int) -> tuple[list[list[str]], list[list[str]]]:
    """Times all engines on the first documents; returns the rows of both tables."""
    ours, plain = built(options, documents, OURS), built(options, documents, PLAIN)
    peers = {
        name: PEERS[name]
        for name in options.engines
        if importlib.util.find_spec(PEERS[name].package) and not (name == "Seismic" and documents > SEISMIC_DOCUMENTS)
    }
    folders = {OURS: ours, PLAIN: plain} | {name: built(options, documents, name) for name in peers}
    opened = {name: peer.open(folders[name]) for name, peer in peers.items()}
    stock = StockSearcher(plain)
    ids = [docid for docid, _ in vectors(options, documents)]
    logs = {name: folder_bytes(folder / "shard" / "wal") for name, folder in folders.items()}  # Qdrant's, for updates
    size = {name: (folder_bytes(folder) - logs[name]) / documents for name, folder in folders.items()}
    rows, builds = [], []
    for name, folder in folders.items():
        cost = json.loads(folder.with_name(f"{folder.name}.json").read_text())
        builds.append([name, f"{documents:,}", f"{cost['seconds']:.1f}", megabytes(cost["peak"]), f"{size[name]:,.0f}"])
    with SignedImpactSearcher(ours) as one, SignedImpactSearcher(plain) as other, ImpactReader(ours) as reader:
        for (form, (nodes, asked, is_same)), k in itertools.product(forms(options, ours).items(), HITS):
            searches: dict[str, list[Ask]] = {
                OURS: [partial(one.search, node, k) for node in nodes],
                PLAIN: [partial(other.search, node, k) for node in nodes],
            }
            right = {}
            for name, prepare in opened.items():
                if form == "A NOT B" and not peers[name].signed:
                    continue
                searches[name] = [prepare(weights, k) for weights in asked]
                if is_same:
                    found = [[ids[hit] if isinstance(hit, int) else hit for hit in ask()] for ask in searches[name]]
                    right[name] = _right(reader, nodes, k, found)
            if form != "A NOT B":
                searches[STOCK] = [stock.lucene(weights, k) for weights in asked]
            taken = in_turn(searches, options.rounds)
            for name, own in taken.items():
                median, p95 = np.quantile(own, (0.5, 0.95))
                ratio = float(np.median(taken[OURS] / own))
                said = [f"{ratio:.2f}", f"{right[name]:.3f}" if name in right else ""]
                rows.append([form, str(k), f"{documents:,}", name, f"{median:.2f}", f"{p95:.2f}", *said])
                print(*rows[-1], file=sys.stderr, flush=True)
    return rows, builds


def in_turn(searches: Mapping[str, Sequence[Ask]], rounds: int) -> dict[str, Any]:
    """For each engine the least processor time of each query, in milliseconds. Each query goes to all in turn.

    Every other round goes the other way round, as an engine is slower behind one that leaves it no caches.
    """
    count = len(next(iter(searches.values())))
    best = {name: np.full(count, np.inf) for name in searches}
    warm, number = time.process_time() + WARM_UP_SECONDS, 0
    while number < rounds or time.process_time() < warm:
        order = list(searches.items())[:: -1 if number % 2 else 1]
        for i in range(count):
            for name, asks in order:
                begun = time.process_time()
                asks[i]()
                best[name][i] = min(best[name][i], 1000 * (time.process_time() - begun))
        number += 1
    return best


WARM_UP_SECONDS = 20.0
"""Rounds go on for so long, or Java has not compiled its code yet."""


def _right(reader: ImpactReader, nodes: Sequence[ScoringNode], k: int, found: Sequence[Sequence[str]]) -> float:
    """The share of the hits whose exact scores are no lower than the k-th best."""
    least = [ranking.scores[-1] for ranking in reader.search(nodes, k)]
    scores = reader.score(nodes, found)
    pairs = zip(least, scores, strict=True)
    return float(np.mean([sum(one is not None and one >= kth for one in own) / k for kth, own in pairs]))


def growth(rows: Sequence[Sequence[str]]) -> str:
    """The exponents b, if the median time grows as n^b for n documents, by least squares of logarithms, as a table."""
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for form, k, documents, name, median, *_ in rows:
        curves.setdefault((form, k, name), {})[int(documents.replace(",", ""))] = float(median)
    known = {name: curve for name, curve in curves.items() if len(curve) > 1}
    fits = {name: np.polyfit(*np.log([[*curve], [*curve.values()]]), 1)[0] for name, curve in known.items()}
    return table(["query", "k", "engine", "b"], [[*name, f"{fit:.2f}"] for name, fit in fits.items()])


def main() -> int:
    """Prints the comparison, the cost of the indexes, and how the times grow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, metavar="FILE", help="what mixed.py writes")
    parser.add_argument("--encoder", required=True, metavar="NAME", help="that of the vectors")
    parser.add_argument("--impact-scale", type=float, required=True, metavar="X", help="as for the command index")
    parser.add_argument("--topics", type=Path, required=True, metavar="FILE", help="queries")
    parser.add_argument("--sizes", type=int, nargs="+", default=[33_000, 100_000], metavar="N")
    parser.add_argument("--engines", nargs="*", default=list(PEERS), choices=PEERS, help="others than ours and Lucene")
    parser.add_argument("--signed", action="store_true", help="A NOT B, and our operators, too")
    parser.add_argument("--queries", type=int, default=40, help="the most of a form (default 40)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows, builds = [], []
    for documents in sorted(options.sizes):
        more, cost = compare(options, documents)
        rows += more
        builds += cost
    print(f"up to {options.queries} queries a form, {options.rounds} rounds or more; {describe(environment())}\n")
    head = ["query", "k", "documents", "engine", "median ms", "p95", "ours / it", "right"]
    print(table(head, sorted(rows, key=lambda row: (row[0], int(row[1])))))
    print(f"\n{table(['engine', 'documents', 'processor s', 'peak memory', 'bytes/document'], builds)}")
    if len(options.sizes) > 1:
        print(f"\n{growth(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
