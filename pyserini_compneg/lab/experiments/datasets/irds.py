"""Registers datasets with ir_datasets under the names ``compneg/FOLDER/SPLIT``. Importing this needs ir_datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.expression import format_expression
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.lab.experiments.datasets.opening import open_dataset
from pyserini_compneg.support.errors import InputError, install_hint

try:
    import ir_datasets
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQrel
    from ir_datasets.indices import Docstore
except ImportError:
    raise ImportError(f"ir_datasets is not installed: {install_hint('ir-datasets')}") from None

VARIABLE = "COMPNEG_DATASETS"

_NAME = r"^compneg/([^/]+)/([^/]+)$"
_root = [Path()]


def register(folder: str | Path | None = None) -> None:
    """Lets ``ir_datasets.load("compneg/filmsets/dev")`` open the split ``dev`` of the dataset in ``folder/filmsets``.

    A second call changes the folder for datasets that have not been loaded yet.

    Args:
        folder: The folder that contains the folders of the datasets; the default is the value of ``COMPNEG_DATASETS``.

    Raises:
        InputError: No folder is given, or it does not exist. ``load`` raises the errors of ``open_dataset``.
    """
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise InputError("no folder of datasets", remedy=f"give one to register, or name it in {VARIABLE}")
    if not Path(chosen).is_dir():
        raise InputError("no such folder of datasets", where=chosen)
    _root[0] = Path(chosen)
    _register_pattern()


@cache
def _register_pattern() -> None:
    ir_datasets.registry.register_pattern(_NAME, _load)


def _load(name: str, groups: tuple[str, str]) -> ir_datasets.Dataset:
    dataset = open_dataset(_root[0] / groups[0])
    dataset.part(groups[1])
    return ir_datasets.Dataset(_Split(dataset, groups[1]))


class _CompnegQuery(NamedTuple):
    """A query of ir_datasets: as text for people, and in the syntax of :func:`expression.parse`."""

    query_id: str
    text: str
    expression: str

    def default_text(self) -> str:
        """The field that ir_datasets uses as the query."""
        return self.text


class _Split(BaseDocs, BaseQueries, BaseQrels):
    def __init__(self, dataset: Dataset, split: str) -> None:
        self._dataset, self._split = dataset, split

    def docs_iter(self) -> Iterator[GenericDoc]:
        for document in self._dataset.documents(self._split):
            yield GenericDoc(document.docid, document.text or "")

    def docs_count(self) -> int:
        return sum(1 for _ in self.docs_iter())

    @cache  # noqa: B019  # ir_datasets keeps what it has loaded
    def docs_store(self) -> _Store:
        return _Store(self.docs_iter())

    def queries_iter(self) -> Iterator[_CompnegQuery]:
        for topic in self._dataset.topics(self._split):
            expression = "" if topic.expression is None else format_expression(topic.expression)
            yield _CompnegQuery(topic.qid, topic.text, expression)

    def queries_cls(self) -> type[_CompnegQuery]:
        return _CompnegQuery

    def qrels_iter(self) -> Iterator[GenericQrel]:
        for qid, judged in self._dataset.qrels(self._split).items():
            yield from (GenericQrel(qid, docid, relevance) for docid, relevance in judged.items())

    def qrels_defs(self) -> dict[int, str]:
        return {1: "relevant", 0: "judged not relevant"}

    def docs_namespace(self) -> str:
        return f"compneg/{self._dataset.name}"

    queries_namespace = docs_namespace

    def docs_lang(self) -> str:
        return "en"

    queries_lang = docs_lang


class _Store(Docstore):
    def __init__(self, documents: Iterable[GenericDoc]) -> None:
        super().__init__(GenericDoc)
        self._documents = {document.doc_id: document for document in documents}

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[GenericDoc]:
        return (self._documents[docid] for docid in doc_ids if docid in self._documents)
