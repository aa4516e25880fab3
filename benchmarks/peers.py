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
import gzip
import importlib.util
import itertools
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import folder_bytes, in_child, peak_bytes
from mixed import ids_in_order
from reporting import INDEXES, describe, environment, megabytes, table
from stock import StockSearcher

from pyserini_compneg.compose import Linear, Operators, ScoringNode
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union, atoms
from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader
from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics import read_topics

HITS = (10, 1000)
BLOCK = 1000
SEISMIC_LISTS, SEISMIC_HEAP_FACTOR, SEISMIC_DOCUMENTS = 10, 0.8, 100_000
OURS, PLAIN, STOCK = "ours", "ours, plain", "stock Lucene"

Ask = Callable[[], Sequence[Any]]
Prepare = Callable[[Mapping[str, float], int], Ask]
"""Prepares the search of a vector for k hits. It gives ids, or numbers of documents in the collection."""


class Peer(NamedTuple):
    """How to build and open an engine's index."""

    package: str
    build: Callable[[argparse.Namespace, int, Path], None]
    open: Callable[[Path], Prepare]
    signed: bool = True
    """Whether it takes negative weights."""


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
        wanted = (by_id.pop(docid) for docid in ids_in_order(folder_of(options, documents, OURS)))
    for record in map(json.loads, wanted):
        impacts = {term: int(weight * options.impact_scale + 0.5) for term, weight in record["vector"].items()}
        yield record["id"], {term: impact for term, impact in impacts.items() if impact}


def numbered(options: argparse.Namespace, documents: int, folder: Path) -> Iterator[tuple[list[int], list[int]]]:
    """The terms of the documents as numbers, ascending, and their impacts. At the end the terms are written."""
    numbers: dict[str, int] = {}
    for _, vector in vectors(options, documents):
        known = sorted((numbers.setdefault(term, len(numbers)), impact) for term, impact in vector.items())
        yield [number for number, _ in known], [impact for _, impact in known]
    (folder / "terms.json").write_text(json.dumps(numbers))


def in_numbers(folder: Path) -> Callable[[Mapping[str, float]], tuple[list[int], list[float]]]:
    """What turns a query into numbers of terms, in ascending order, and weights."""
    numbers: dict[str, int] = json.loads((folder / "terms.json").read_text())

    def turned(weights: Mapping[str, float]) -> tuple[list[int], list[float]]:
        known = sorted((numbers[term], weight) for term, weight in weights.items() if term in numbers)
        return [number for number, _ in known], [weight for _, weight in known]

    return turned


def in_rows(options: argparse.Namespace, documents: int, folder: Path) -> tuple[Any, Any, Any]:
    """The documents as the rows of a matrix: the numbers of terms, their impacts, and where each row begins."""
    terms, impacts, starts = [], [], [0]
    for numbers, values in numbered(options, documents, folder):
        terms.append(np.array(numbers, np.int32))
        impacts.append(np.array(values, np.float32))
        starts.append(starts[-1] + len(numbers))
    return np.concatenate(terms), np.concatenate(impacts), np.array(starts, np.int64)


def folder_of(options: argparse.Namespace, documents: int, name: str) -> Path:
    """Where the index of an engine is."""
    line = anserini_jar().stem if name in (OURS, PLAIN) else ""
    return INDEXES / "-".join(["peers", options.collection.parent.name, f"{documents}", *name.split(", "), line])


def build_ours(options: argparse.Namespace, documents: int, folder: Path, *, reorder: bool) -> None:
    """Builds our index; that of ``index`` is in order."""
    settings = {"impact_scale": options.impact_scale, "optimize": True, "reorder": reorder, "existing": "overwrite"}
    with ImpactIndexer(folder, str(options.encoder), **settings) as indexer:
        for number, block in enumerate(lines(options.collection, documents)):
            indexer.add_lines(b"".join(block), str(options.collection), BLOCK * number + 1)


def build_qdrant(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds a shard of Qdrant Edge, in one segment."""
    import qdrant_edge as edge

    optimizers = edge.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1)
    settings = edge.EdgeConfig(sparse_vectors={"terms": edge.EdgeSparseVectorParams()}, optimizers=optimizers)
    (folder / "shard").mkdir()
    shard = edge.EdgeShard.create(str(folder / "shard"), settings)
    points = enumerate(numbered(options, documents, folder))
    while block := list(itertools.islice(points, BLOCK)):
        made = [edge.Point(number, {"terms": edge.SparseVector(terms, impacts)}) for number, (terms, impacts) in block]
        shard.update(edge.UpdateOperation.upsert_points(made))
    shard.optimize()
    shard.flush()
    shard.close()


def open_qdrant(folder: Path) -> Prepare:
    """Opens a shard of Qdrant Edge."""
    import qdrant_edge as edge

    shard, turned = edge.EdgeShard.load(str(folder / "shard")), in_numbers(folder)

    def prepare(weights: Mapping[str, float], k: int) -> Ask:
        query = edge.Query.Nearest(edge.SparseVector(*turned(weights)), using="terms")
        return lambda: [hit.id for hit in shard.search(edge.SearchRequest(query, k))]

    return prepare


def build_bmp(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds BMP's index."""
    from bmp import Indexer

    indexer = Indexer(str(folder / "index.bmp"), bsize=32, compress_range=False)  # its defaults
    for docid, impacts in vectors(options, documents, ordered=True):
        indexer.add_document(docid, {term: min(impact, 255) for term, impact in impacts.items()})
    indexer.finish()


def open_bmp(folder: Path) -> Prepare:
    """Opens BMP's index."""
    from bmp import Searcher

    searcher = Searcher(str(folder / "index.bmp"))
    return lambda weights, k: lambda: searcher.search(weights, k=k, alpha=1.0, beta=1.0)[0]


def build_pisa(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds PISA's index of impacts."""
    from pyterrier_pisa import PisaIndex

    records = ({"docno": docid, "toks": impacts} for docid, impacts in vectors(options, documents))
    PisaIndex(str(folder / "index"), stemmer="none").toks_indexer(scale=1.0).index(records)


def open_pisa(folder: Path) -> Prepare:
    """Opens PISA's index."""
    import pandas
    from pyterrier_pisa import PisaIndex

    index = PisaIndex(str(folder / "index"), stemmer="none")

    def prepare(weights: Mapping[str, float], k: int) -> Ask:
        retriever = index.quantized(num_results=k, toks_scale=1.0, threads=1)
        frame = pandas.DataFrame([{"qid": "1", "query_toks": dict(weights)}])
        return lambda: list(retriever(frame)["docno"])

    return prepare


def build_seismic(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds Seismic's index."""
    import seismic

    dataset, text = seismic.SeismicDataset(), seismic.get_seismic_string()
    for docid, impacts in vectors(options, documents):
        dataset.add_document(docid, np.array(list(impacts), text), np.array(list(impacts.values()), np.float32))
    seismic.SeismicIndex.build_from_dataset(dataset, num_threads=1).save(str(folder / "seismic"))


def open_seismic(folder: Path) -> Prepare:
    """Opens Seismic's index."""
    import seismic

    text = seismic.get_seismic_string()
    (file,) = folder.glob("seismic*")
    index = seismic.SeismicIndex.load(str(file))

    def prepare(weights: Mapping[str, float], k: int) -> Ask:
        terms, values = np.array(list(weights), text), np.array(list(weights.values()), np.float32)
        ask = partial(index.search, "", terms, values, k, SEISMIC_LISTS, SEISMIC_HEAP_FACTOR, sorted=True)
        return lambda: [docid for _, _, docid in ask()]

    return prepare


def build_kannolo(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds kannolo's flat index."""
    import kannolo

    terms, impacts, starts = in_rows(options, documents, folder)
    kannolo.SparseFlatIndex.build_from_arrays(terms, impacts, starts).save(str(folder / "index"))


def open_kannolo(folder: Path) -> Prepare:
    """Opens kannolo's flat index."""
    import kannolo

    index, turned = kannolo.SparseFlatIndex.load(str(folder / "index")), in_numbers(folder)

    def prepare(weights: Mapping[str, float], k: int) -> Ask:
        terms, values = turned(weights)
        return lambda: index.search(np.array(terms, np.int32), np.array(values, np.float32), k)[1].tolist()

    return prepare


def build_splade_index(options: argparse.Namespace, documents: int, folder: Path) -> None:
    """Builds the arrays of splade-index, which its own ``index`` would get from a model."""
    from scipy import sparse

    terms, impacts, starts = in_rows(options, documents, folder)
    columns = sparse.csr_matrix((impacts, terms, starts)).tocsc()
    np.savez(folder / "scores", data=columns.data, indices=columns.indices, indptr=columns.indptr)


def open_splade_index(folder: Path) -> Prepare:
    """Opens splade-index."""
    from splade_index import SPLADE

    arrays, turned = dict(np.load(folder / "scores.npz")), in_numbers(folder)
    model = SPLADE(backend="numpy")
    model.scores = arrays | {"num_docs": int(arrays["indices"].max()) + 1}

    def ask(terms: Any, weights: Any, k: int) -> Any:
        scores = SPLADE._compute_relevance_from_scores(
            **arrays, num_docs=model.scores["num_docs"], query_token_ids=terms, query_token_weights=weights,
            dtype=np.dtype(np.float32),
        )  # fmt: skip
        best = np.argpartition(scores, -k)[-k:]
        return best[np.argsort(-scores[best], kind="stable")].tolist()

    def prepare(weights: Mapping[str, float], k: int) -> Ask:
        terms, values = turned(weights)
        return lambda: ask(np.array(terms), np.array(values, np.float32), k)

    return prepare


PEERS = {
    "Qdrant": Peer("qdrant_edge", build_qdrant, open_qdrant),
    "BMP": Peer("bmp", build_bmp, open_bmp, signed=False),
    "PISA": Peer("pyterrier_pisa", build_pisa, open_pisa, signed=False),
    "Seismic": Peer("seismic", build_seismic, open_seismic),
    "kannolo, flat": Peer("kannolo", build_kannolo, open_kannolo),
    "splade-index": Peer("splade_index", build_splade_index, open_splade_index),
}
OWN = {OURS: partial(build_ours, reorder=True), PLAIN: partial(build_ours, reorder=False)}


def built(options: argparse.Namespace, documents: int, name: str) -> Path:
    """The folder of an engine's index, which a process of its own builds on the first call."""
    folder = folder_of(options, documents, name)
    done = folder / (MANIFEST_NAME if name in OWN else "terms.json")
    cost = folder.with_name(f"{folder.name}.json")
    if not done.exists() or not cost.exists():
        seconds, peak = in_child(_build, options, documents, name, folder)
        cost.write_text(json.dumps({"seconds": seconds, "peak": peak}))
        if name not in OWN:
            done.touch()
    return folder


def _build(options: argparse.Namespace, documents: int, name: str, folder: Path) -> tuple[float, int]:
    """Builds an index; returns the processor time and the peak memory of this process."""
    build = OWN[name] if name in OWN else PEERS[name].build
    if name not in OWN:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    begun = time.process_time()
    build(options, documents, folder)
    return time.process_time() - begun, peak_bytes()


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
