"""Indexes sparse embeddings as impacts, searches them exactly, and writes the run."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pyserini_compneg import ImpactIndexer
from pyserini_compneg.compose import Linear
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.search import Hit, write_run

Embedding = tuple[str, np.ndarray, np.ndarray]
"""An id, the tokens, and their weights, as lsr_benchmark loads them."""


def build_index(folder: Path, encoder: str, documents: Iterable[Embedding], scale: float, reorder: bool = True) -> None:
    """Builds an index with the impacts round(weight * scale), on all processors."""
    with ImpactIndexer(folder, encoder, impact_scale=scale, reorder=reorder) as indexer:
        for docid, tokens, weights in documents:
            indexer.add(docid, vector(tokens, weights))


def search(folder: Path, queries: Sequence[Embedding], k: int, threads: int = 1) -> list[list[Hit]]:
    """The k best documents of each query, with scores in the unit of the embeddings. Query weights are not rounded."""
    nodes = [Linear(vector(tokens, weights)) for _, tokens, weights in queries]
    with ImpactReader(folder) as reader:
        scale = reader.manifest.impact_scale
        return [
            [Hit(docid, score / scale) for docid, score in zip(*ranking, strict=True)]
            for ranking in reader.search(nodes, k, threads)
        ]


def vector(tokens: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """The weights other than 0, by token."""
    return {token: weight for token, weight in zip(tokens.tolist(), weights.tolist(), strict=True) if weight}


def write_rankings(path: Path, qids: Sequence[str], rankings: Sequence[Sequence[Hit]], tag: str) -> None:
    """Writes a compressed TREC run."""
    with gzip.open(path, "wt", encoding="utf-8") as run:
        for qid, hits in zip(qids, rankings, strict=True):
            write_run(run, qid, hits, tag=tag)
