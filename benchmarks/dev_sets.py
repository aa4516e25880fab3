"""What benchmarks of rankings share: datasets, their queries as they are read, their indexes, and runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reporting import INDEXES

from pyserini_compneg.encode.hybrid import short_name
from pyserini_compneg.eval import Run
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import Dataset
from pyserini_compneg.reading import ModelReader
from pyserini_compneg.search import Method, SignedImpactSearcher
from pyserini_compneg.search.run_writer import printed_scores
from pyserini_compneg.support.files import slug
from pyserini_compneg.topics import Topic
from pyserini_compneg.topics.batch import topic_query

MOST_FOR_ALL = 10_000
"""Runs have all documents of a collection of at most this size, and 1,000 of a larger one."""


def label(encoder: str) -> str:
    """The encoder's name without folders."""
    return short_name(encoder)


def index_path(dataset: Dataset, encoder: str) -> Path:
    """Where the index is, or will be."""
    return INDEXES / f"{dataset.name}-{slug(label(encoder))}"


def index_of(dataset: Dataset, split: str, encoder: str = "bm25", store_raw: bool = False) -> Path:
    """The index in indexes/, which is built if it is missing. One with the texts has a name of its own."""
    index = index_path(dataset, encoder)
    index = index.with_name(f"{index.name}-raw") if store_raw else index
    if not index.exists():
        collection = dataset.collection
        if collection is None:
            collection = INDEXES / f"{dataset.name}.jsonl"
            lines = ({"id": document.docid, "contents": document.text} for document in dataset.documents(split))
            collection.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        build_index(collection, index, encoder=encoder, store_raw=store_raw)
    return index


def as_read(topics: Sequence[Topic], reader: ModelReader) -> list[Topic]:
    """The topics with the expressions that their texts are read as."""
    pairs = zip(topics, reader.read([topic.text for topic in topics]), strict=True)
    return [replace(topic, expression=reading.expression, decomposition=reading) for topic, reading in pairs]


def search(
    searcher: SignedImpactSearcher, topics: Sequence[Topic], k: int | None = None, method: Method | None = None
) -> Run:
    """The scores of the first k documents; by default, of all of them in a small collection."""
    k = k or (searcher.num_docs if searcher.num_docs <= MOST_FOR_ALL else 1000)
    queries, qids = [topic_query(t) for t in topics], [t.qid for t in topics]
    hits = searcher.batch_search(queries, qids, k, threads=2, method=method)
    return {
        qid: dict(zip([hit.docid for hit in ranked], printed_scores(ranked), strict=True))
        for qid, ranked in hits.items()
    }
