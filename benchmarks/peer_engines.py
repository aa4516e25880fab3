"""The engines that ``peers.py`` compares: how each builds its index of the collection, and how it is asked.

The names of terms become numbers where an engine takes none. Each index is below ``indexes``.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import in_child, peak_bytes
from mixed import ids_in_order
from reporting import INDEXES

from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import MANIFEST_NAME
from pyserini_compneg.lucene.anserini import anserini_jar

BLOCK = 1000
SEISMIC_LISTS, SEISMIC_HEAP_FACTOR = 10, 0.8
OURS, PLAIN = "ours", "ours, plain"

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
