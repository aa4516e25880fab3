"""Our search beside other engines for learned sparse vectors, on the same real-shaped documents and queries.

    python benchmarks/engines.py --collection mixed/mixed.jsonl.gz --encoder MODEL --impact-scale 51.2 --topics TOPICS
                                 [--sizes 100000 300000 1000000] [--queries 15] [--rounds 3] [--alone]

The collection is what ``mixed.py`` writes; each size is that of its first documents. Other engines take one vector of
positive weights a query, so "positive" is what all of them run. The queries are those of ``search.py --topics``.

- ours, plain and in the order of ``index --reorder``, with the ids of all hits;
- stock Lucene on the plain index, without ids, the positive terms of each query;
- BMP (Mallia, Suel and Tonellotto, SIGIR 2024; the package ``bmp``), with documents in the order of our reordered one;
- Seismic (Bruch et al., SIGIR 2024; the package ``pyseismic-lsr``), approximate, with its documented settings, for
  100,000 documents at most, since its build takes minutes;
- a full scan with scipy.

The packages are left out where they are not installed. A line has the median and the 99th percentile of the latencies
by the clock, on one thread; the share of the hits that are right, which means that their exact scores are no lower than
the k-th best; and the bytes a document of the index, on the disk or in memory.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from measuring import folder_bytes, resident_bytes, timed
from mixed import ids_in_order
from real_queries import real_queries
from reporting import INDEXES, describe, environment, table
from scipy import sparse
from stock import StockSearcher
from synthetic import Query

from pyserini_compneg.compose import Linear, ScoringNode
from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader
from pyserini_compneg.lucene.anserini import anserini_jar

HITS = (10, 1000)
BLOCK = 1000
SEISMIC_LISTS, SEISMIC_HEAP_FACTOR, SEISMIC_DOCUMENTS = 10, 0.8, 100_000

Search = Callable[[Mapping[str, float], int], Callable[[], list[str]]]
"""Prepares the search of a vector for k hits; it gives their ids."""


def lines(collection: Path, documents: int) -> Iterator[list[bytes]]:
    """The first documents, in blocks."""
    with gzip.open(collection) as file:
        first = itertools.islice(file, documents)
        while block := list(itertools.islice(first, BLOCK)):
            yield block


def vectors(options: argparse.Namespace, documents: int, ordered: bool = False) -> Iterator[tuple[str, dict[str, int]]]:
    """The ids of the first documents and their impacts, rounded as in our index, maybe in its order."""
    wanted = itertools.chain.from_iterable(lines(options.collection, documents))
    if ordered:
        by_id = {line.split(b'"', 4)[3].decode(): line for line in wanted}
        wanted = (by_id.pop(docid) for docid in ids_in_order(our_index(options, documents, True)))
    for record in map(json.loads, wanted):
        impacts = {term: int(weight * options.impact_scale + 0.5) for term, weight in record["vector"].items()}
        yield record["id"], {term: impact for term, impact in impacts.items() if impact}


def our_index(options: argparse.Namespace, documents: int, reorder: bool) -> Path:
    """The folder of our index of the first documents, which is built on the first call."""
    name = f"engines-{options.collection.parent.name}-{documents}-{anserini_jar().stem}"
    folder = INDEXES / (f"{name}-reordered" if reorder else name)
    if not (folder / MANIFEST_NAME).exists():
        settings = {"impact_scale": options.impact_scale, "optimize": True, "reorder": reorder, "existing": "overwrite"}
        with ImpactIndexer(folder, str(options.encoder), **settings) as indexer:
            for number, block in enumerate(lines(options.collection, documents)):
                indexer.add_lines(b"".join(block), str(options.collection), BLOCK * number + 1)
    return folder


def with_bmp(options: argparse.Namespace, documents: int) -> tuple[Search, float]:
    """BMP, and its bytes a document."""
    from bmp import Indexer, Searcher

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.bmp"
        indexer = Indexer(str(path), bsize=32, compress_range=False)  # its defaults
        for docid, impacts in vectors(options, documents, ordered=True):
            indexer.add_document(docid, impacts)
        indexer.finish()
        searcher, size = Searcher(str(path)), path.stat().st_size / documents

    def prepare(weights: Mapping[str, float], k: int) -> Callable[[], list[str]]:
        return lambda: searcher.search(weights, k=k, alpha=1.0, beta=1.0)[0]

    return prepare, size


def with_seismic(options: argparse.Namespace, documents: int) -> tuple[Search, float]:
    """Seismic, and the bytes a document that the process takes more with it."""
    import seismic

    before = resident_bytes()
    dataset = seismic.SeismicDataset()
    text = seismic.get_seismic_string()
    for docid, impacts in vectors(options, documents):
        dataset.add_document(docid, np.array(list(impacts), text), np.array(list(impacts.values()), np.float32))
    index = seismic.SeismicIndex.build_from_dataset(dataset, num_threads=1)
    del dataset

    def prepare(weights: Mapping[str, float], k: int) -> Callable[[], list[str]]:
        terms, values = np.array(list(weights), text), np.array(list(weights.values()), np.float32)
        ask = partial(index.search, "", terms, values, k, SEISMIC_LISTS, SEISMIC_HEAP_FACTOR, sorted=True)
        return lambda: [docid for _, _, docid in ask()]

    return prepare, (resident_bytes() - before) / documents


def with_full_scan(options: argparse.Namespace, documents: int) -> tuple[Search, float]:
    """The collection as a matrix of columns, and its bytes a document."""
    numbers: dict[str, int] = {}
    ids, terms, impacts, starts = [], [], [], [0]
    for docid, vector in vectors(options, documents):
        ids.append(docid)
        terms.append(np.array([numbers.setdefault(term, len(numbers)) for term in vector], np.int32))
        impacts.append(np.fromiter(vector.values(), np.uint16))
        starts.append(starts[-1] + len(vector))
    shape = (documents, len(numbers))
    columns = sparse.csr_matrix((np.concatenate(impacts), np.concatenate(terms), starts), shape).tocsc()

    def search(weights: Mapping[str, float], k: int) -> list[str]:
        scores = np.zeros(documents)
        for term, weight in weights.items():
            if (number := numbers.get(term)) is not None:
                part = slice(*columns.indptr[number : number + 2])
                scores[columns.indices[part]] += weight * columns.data[part]
        best = np.argpartition(scores, -k)[-k:]
        return [ids[place] for place in best[np.argsort(-scores[best], kind="stable")]]

    arrays = (columns.data, columns.indices, columns.indptr)
    return lambda weights, k: partial(search, weights, k), sum(array.nbytes for array in arrays) / documents


OTHERS = {"BMP": ("bmp", with_bmp), "Seismic": ("seismic", with_seismic), "full scan": ("scipy", with_full_scan)}


def compare(options: argparse.Namespace, documents: int) -> list[list[str]]:
    """Times all engines on the first documents; returns the rows of the table."""
    reordered = our_index(options, documents, True)
    if options.alone:
        return compare_with_itself(reordered, options, documents)
    plain = our_index(options, documents, False)
    kinds = real_queries(plain, options.topics, options.queries)
    stock = StockSearcher(plain)
    sizes = {"ours": folder_bytes(plain) / documents, "ours, reordered": folder_bytes(reordered) / documents}
    others: dict[str, Search] = {}
    for name, (package, engine) in OTHERS.items():
        if importlib.util.find_spec(package) and not (name == "Seismic" and documents > SEISMIC_DOCUMENTS):
            others[name], sizes[name] = engine(options, documents)
    rows = []
    with ImpactReader(plain) as reader, ImpactReader(reordered) as other:
        for (kind, asked), k in itertools.product(kinds.items(), HITS):
            nodes = [query.node for query in asked]
            searches = {
                "ours": [partial(reader.search, [node], k) for node in nodes],
                "ours, reordered": [partial(other.search, [node], k) for node in nodes],
                "stock Lucene": [stock.lucene(query.positive, k) for query in asked],
            }
            right = {}
            if kind == "positive":
                runs = {name: [search(_weights(query), k) for query in asked] for name, search in others.items()}
                right = {name: _right(reader, nodes, k, [run() for run in own]) for name, own in runs.items()}
                searches |= runs
            taken = timed(searches, options.rounds)
            for name in searches:
                median, p99 = np.quantile(taken[name].wall, (0.5, 0.99))
                said = [f"{right[name]:.3f}" if name in right else "", f"{sizes.get(name, sizes['ours']):,.0f}"]
                rows.append([kind, str(k), f"{documents:,}", name, f"{median:.2f}", f"{p99:.2f}", *said])
                print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def compare_with_itself(reordered: Path, options: argparse.Namespace, documents: int) -> list[list[str]]:
    """Times our search alone, in the reordered index; returns the same rows."""
    name, size, rows = "ours, reordered", f"{folder_bytes(reordered) / documents:,.0f}", []
    kinds = real_queries(reordered, options.topics, options.queries)
    with ImpactReader(reordered) as reader:
        for (kind, asked), k in itertools.product(kinds.items(), HITS):
            searches = [partial(reader.search, [query.node], k) for query in asked]
            median, p99 = np.quantile(timed({name: searches}, options.rounds)[name].wall, (0.5, 0.99))
            rows.append([kind, str(k), f"{documents:,}", name, f"{median:.2f}", f"{p99:.2f}", "", size])
            print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def _weights(query: Query) -> dict[str, float]:
    assert isinstance(query.node, Linear)
    return dict(query.node.weights)


def _right(reader: ImpactReader, nodes: Sequence[ScoringNode], k: int, found: Sequence[Sequence[str]]) -> float:
    """The share of the hits whose exact scores are no lower than the k-th best."""
    least = [ranking.scores[-1] for ranking in reader.search(nodes, k)]
    scores = reader.score(nodes, found)
    pairs = zip(least, scores, strict=True)
    return float(np.mean([sum(one is not None and one >= kth for one in own) / k for kth, own in pairs]))


def main() -> int:
    """Prints the comparison, and how latencies grow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, metavar="FILE", help="what mixed.py writes")
    parser.add_argument("--encoder", required=True, metavar="NAME", help="that of the vectors")
    parser.add_argument("--impact-scale", type=float, required=True, metavar="X", help="as for the command index")
    parser.add_argument("--topics", type=Path, required=True, metavar="FILE", help="queries")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], metavar="N")
    parser.add_argument("--alone", action="store_true", help="our reordered index alone, to see how latency grows")
    parser.add_argument("--queries", type=int, default=15, help="the most of a kind (default 15)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = [row for documents in sorted(options.sizes) for row in compare(options, documents)]
    print(f"up to {options.queries} queries a kind, {options.rounds} rounds; {describe(environment())}\n")
    head = ["query", "k", "documents", "engine", "median ms", "p99", "right", "bytes/document"]
    print(table(head, sorted(rows, key=lambda row: (row[0], int(row[1]), row[3]))))
    curves: dict[tuple[str, ...], dict[int, float]] = {}
    for kind, k, documents, engine, median, *_ in rows:
        curves.setdefault((kind, k, engine), {})[int(documents.replace(",", ""))] = float(median)
    if len(options.sizes) > 1:
        print("\nGrowth: the median latency ~ n^b for n documents, by least squares of logarithms\n")
        fits = {
            name: np.polyfit(*np.log([[*curve], [*curve.values()]]), 1)[0]
            for name, curve in curves.items()
            if len(curve) > 1
        }
        print(table(["query", "k", "engine", "b"], [[*name, f"{fit:.2f}"] for name, fit in fits.items()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
