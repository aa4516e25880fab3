"""What is measured of a collection of one size; each function is to run in a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import seismic_engine
from brute_force import BruteForce, TopDocuments
from measuring import folder_bytes, peak_bytes, timed
from seismic_engine import QUERY_CUTS, Seismic
from synthetic import ENCODER, JsonWriter, Query, blocks, queries

from pyserini_compneg.compose import Linear, to_json
from pyserini_compneg.errors import CompNegError
from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import ImpactReader, Ranking

KINDS = ("positive", "signed", "cpt")
HITS = (10, 1000)
OURS, BRUTE_FORCE, SEISMIC = "ours", "brute force", "Seismic"

_COMPILING_SECONDS = 15.0
"""How long our search runs before anything else does, so that Java has compiled it before the first kind is timed."""

_ROUNDING = 1e-6
"""How far the scores of conjunctions may be apart, relatively: both sides round roots, and scores to float."""


class Settings(NamedTuple):
    """How a size is measured.

    Attributes:
        queries: Queries of each kind.
        rounds: Rounds that count.
        threads: Threads that index.
        memory_gb: The most memory that an engine may need beside ours.
        seismic_documents: The largest collection that Seismic gets.
    """

    queries: int
    rounds: int
    threads: int
    memory_gb: int
    seismic_documents: int


def build(index: Path, documents: int, threads: int) -> dict[str, float]:
    """Builds the index, merged to one segment, from blocks that are generated on the way."""
    writer = JsonWriter()
    start = time.perf_counter()
    with ImpactIndexer(index, ENCODER, threads=threads, optimize=True, overwrite=True) as indexer:
        for block in blocks(documents):
            indexer.add_lines(writer.lines(block), ENCODER, block.first + 1)
        indexer.has_terms()  # waits until all are in
        added = time.perf_counter()
    done = time.perf_counter()
    return {
        "documents_per_second": documents / (added - start),
        "merge_seconds": done - added,
        "peak_bytes": peak_bytes(),
    }


def search(index: Path, documents: int, settings: Settings) -> dict[str, Any]:
    """Times all engines, and compares what they find.

    Raises:
        CompNegError: Our search finds anything else than the full scan does.
    """
    asked = {kind: found for kind, found in queries(settings.queries).items() if kind in KINDS}
    start = time.perf_counter()
    reader = ImpactReader(index)
    _rankings(reader, asked["positive"][:1], HITS[0])
    result: dict[str, Any] = {"first_hit_seconds": time.perf_counter() - start, "index_bytes": folder_bytes(index)}
    warm = time.perf_counter() + _COMPILING_SECONDS
    while "peak_bytes" not in result or time.perf_counter() < warm:
        for kind in KINDS:
            for k in HITS:
                _rankings(reader, asked[kind], k)
        result["peak_bytes"] = peak_bytes()
    brute_force, result[BRUTE_FORCE] = _brute_force(documents, settings)
    seismic, result[SEISMIC] = _seismic(documents, settings)
    result["runs"] = [
        line
        for kind in KINDS
        for k in HITS
        for line in _compare(kind, k, asked[kind], settings.rounds, reader, brute_force, seismic)
    ]
    reader.close()
    return result


def _rankings(reader: ImpactReader, asked: Sequence[Query], k: int) -> list[Ranking]:
    return reader.search([json.dumps(to_json(query.node)) for query in asked], k)


def _brute_force(documents: int, settings: Settings) -> tuple[BruteForce | None, dict[str, Any]]:
    needed = BruteForce.needed_bytes(documents)
    if needed > 1e9 * settings.memory_gb:
        return None, {"skipped": f"it needs {needed / 1e9:.1f} GB, and --memory-gb is {settings.memory_gb}"}
    engine = BruteForce(documents)
    return engine, {"load_seconds": engine.load_seconds, "resident_bytes": engine.resident_bytes}


def _seismic(documents: int, settings: Settings) -> tuple[Seismic | None, dict[str, Any]]:
    needed = Seismic.needed_bytes(documents)
    if not seismic_engine.available():
        return None, {"skipped": f"it is not installed; {seismic_engine.HINT}"}
    if documents > settings.seismic_documents:
        return None, {"skipped": f"--seismic-documents is {settings.seismic_documents:,}"}
    if needed > 1e9 * settings.memory_gb:
        return None, {"skipped": f"it needs {needed / 1e9:.1f} GB, and --memory-gb is {settings.memory_gb}"}
    before = peak_bytes()
    engine = Seismic(documents, settings.threads)
    return engine, {"build_seconds": engine.build_seconds, "peak_bytes": peak_bytes() - before}


def _compare(
    kind: str,
    k: int,
    asked: Sequence[Query],
    rounds: int,
    reader: ImpactReader,
    brute_force: BruteForce | None,
    seismic: Seismic | None,
) -> list[dict[str, Any]]:
    """A line for each engine that can answer the queries of a kind."""
    before = reader.work_done()
    own = _rankings(reader, asked, k)
    work = [(after - earlier) / len(asked) for earlier, after in zip(before, reader.work_done(), strict=True)]
    searches: dict[str, list[Callable[[], Any]]] = {
        OURS: [partial(reader.search, [json.dumps(to_json(query.node))], k) for query in asked]
    }
    extra: dict[str, Mapping[str, float]] = {OURS: {"postings": work[2], "scored": work[3]}}
    if brute_force:
        searches[BRUTE_FORCE] = [partial(brute_force.search, query.node, k) for query in asked]
        for number, (query, ranking) in enumerate(zip(asked, own, strict=True)):
            _check(f"{kind} query {number}, k={k}", query, ranking, brute_force.search(query.node, k))
    if seismic:
        for cut in QUERY_CUTS:
            runs = [seismic.prepared(query.node.weights, k, cut) for query in asked if isinstance(query.node, Linear)]
            if runs:
                name = f"{SEISMIC}, {cut} lists"
                searches[name] = list(runs)
                extra[name] = {"share": _share([{hit[2] for hit in run()} for run in runs], own)}
    lines = []
    for name, taken in timed(searches, rounds).items():
        median, high = np.quantile(taken, (0.5, 0.99)).tolist()
        line = {"kind": kind, "k": k, "engine": name, "median_ms": median, "p99_ms": high}
        lines.append(line | dict(extra.get(name, {})))
    return lines


def _check(name: str, query: Query, own: Ranking, exact: TopDocuments) -> None:
    """Vectors give the same ids, and scores to the last bit; conjunctions the same scores, up to rounding."""
    scores = np.array(own.scores, dtype=np.float32)
    if isinstance(query.node, Linear):
        same = own.docids == exact.docids and np.array_equal(scores, exact.scores)
    else:
        same = len(scores) == len(exact.scores) and np.allclose(scores, exact.scores, rtol=_ROUNDING, atol=0)
    if not same:
        raise CompNegError(f"{name}: our search does not find what a full scan finds")


def _share(found: Sequence[set[str]], own: Sequence[Ranking]) -> float:
    """The share of the exact hits that are found."""
    return sum(len(a.intersection(b.docids)) for a, b in zip(found, own, strict=True)) / sum(len(b.docids) for b in own)
