"""Datasets as ir_datasets sees them; imports ir_datasets, so only :mod:`registration` imports this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import ir_datasets
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQrel
from ir_datasets.indices import Docstore

from pyserini_compneg.datasets.dataset import Dataset
from pyserini_compneg.expression import format_expression


class CompnegQuery(NamedTuple):
    """A query of ir_datasets.

    Attributes:
        query_id: Its id.
        text: What people read, and engines that know no expressions.
        expression: The same in the syntax of :func:`expression.parse`; a text without operators is one atom.
    """

    query_id: str
    text: str
    expression: str

    def default_text(self) -> str:
        """What ir_datasets takes for the query."""
        return self.text


def subset(dataset: Dataset, split: str) -> ir_datasets.Dataset:
    """A split as a dataset of ir_datasets: documents with a store, queries and judgements."""
    return ir_datasets.Dataset(_Docs(dataset, split), _Queries(dataset, split), _Qrels(dataset, split))


class _Docs(BaseDocs):
    def __init__(self, dataset: Dataset, split: str) -> None:
        self._dataset, self._split = dataset, split
        self._store: _Store | None = None

    def docs_iter(self) -> Iterator[GenericDoc]:
        for document in self._dataset.documents(self._split):
            yield GenericDoc(document.docid, document.text or "")

    def docs_count(self) -> int:
        return sum(1 for _ in self.docs_iter())

    def docs_store(self) -> _Store:
        if self._store is None:
            self._store = _Store(self.docs_iter())
        return self._store

    def docs_namespace(self) -> str:
        return f"compneg/{self._dataset.name}"

    def docs_lang(self) -> str:
        return "en"


class _Store(Docstore):
    """All documents in memory."""

    def __init__(self, documents: Iterable[GenericDoc]) -> None:
        super().__init__(GenericDoc)
        self._documents = {document.doc_id: document for document in documents}

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[GenericDoc]:
        return (self._documents[docid] for docid in doc_ids if docid in self._documents)


class _Queries(BaseQueries):
    def __init__(self, dataset: Dataset, split: str) -> None:
        self._dataset, self._split = dataset, split

    def queries_iter(self) -> Iterator[CompnegQuery]:
        for topic in self._dataset.topics(self._split):
            expression = "" if topic.expression is None else format_expression(topic.expression)
            yield CompnegQuery(topic.qid, topic.text, expression)

    def queries_cls(self) -> type[CompnegQuery]:
        return CompnegQuery

    def queries_namespace(self) -> str:
        return f"compneg/{self._dataset.name}"

    def queries_lang(self) -> str:
        return "en"


class _Qrels(BaseQrels):
    def __init__(self, dataset: Dataset, split: str) -> None:
        self._dataset, self._split = dataset, split

    def qrels_iter(self) -> Iterator[GenericQrel]:
        for qid, judged in self._dataset.qrels(self._split).items():
            yield from (GenericQrel(qid, docid, relevance) for docid, relevance in judged.items())

    def qrels_defs(self) -> dict[int, str]:
        return {1: "relevant", 0: "judged not relevant"}
