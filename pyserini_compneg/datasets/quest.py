"""QUEST's files, and those of collections that have its fields: entities named by set expressions.

Source: Malaviya et al. 2023, QUEST; the domain split and the non-compositional subset are those of Krasakis, Yates and
Kanoulas, section 4.1. Which files they divide by domain is not said; here it is all that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.datasets.dataset import Dataset, Split, collection_documents
from pyserini_compneg.datasets.layout import check_objects, first_fields, found, found_splits, required
from pyserini_compneg.datasets.qrels import Qrels, read_qrels
from pyserini_compneg.datasets.records import ID_FIELDS
from pyserini_compneg.datasets.topics import Topic, read_topics
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.expression import Atom

DOMAINS = {"domain-train": ("films", "books"), "domain-test": ("plants", "animals")}
"""The domains that each side of the domain split keeps."""

_NAMES = ("train", "train_aug", "val", "dev", "test", "queries")
_QUEST = "QUEST, google-research/language (Apache-2.0); text from Wikipedia (CC BY-SA)"
_FILMSETS = "FilmSets, which is not QUEST, from prust/wikipedia-movie-data (MIT); text from Wikipedia (CC BY-SA)"


def is_quest(folder: Path) -> bool:
    """Whether a folder has QUEST's documents or queries, the latter without ids."""
    return _is_layout(folder) and not _has_ids(folder)


def is_filmsets(folder: Path) -> bool:
    """Whether a folder has documents or queries like QUEST's, the latter with ids."""
    return _is_layout(folder) and _has_ids(folder)


def open_quest(folder: Path) -> Dataset:
    """QUEST: a split for each file, the atomic queries of those for training, and the domain split.

    Raises:
        CollectionError: A file is missing.
    """
    dataset = _opened(folder, "quest", _QUEST)
    files, documents = _query_files(folder), dataset.parts[dataset.splits[0]].documents
    if "train_aug" in files:  # it holds what train does
        files.pop("train", None)
    parts = dict(dataset.parts)
    for name, domains in DOMAINS.items():
        parts[name] = _Selection(files, partial(_is_of, domains), pooled=True).split(documents)
        if name == "domain-train":
            parts[f"{name}-nc"] = _Selection(files, partial(_is_atomic_of, domains), pooled=True).split(documents)
    return replace(dataset, parts=parts)


def open_filmsets(folder: Path) -> Dataset:
    """FilmSets and what is made like it: a split for each file, and the atomic queries of those for training.

    Raises:
        CollectionError: A file is missing.
    """
    return _opened(folder, "filmsets", _FILMSETS)


def _opened(folder: Path, kind: str, provenance: str) -> Dataset:
    collection = required(folder, "documents.jsonl", kind)
    documents = partial(collection_documents, collection)
    parts: dict[str, Split] = {}
    for name, path in _query_files(folder).items():
        parts[name] = Split(documents, partial(read_topics, path), partial(read_qrels, path))
        if name.startswith("train"):
            parts[f"{name}-nc"] = _Selection({name: path}, _is_atomic).split(documents)
    if not parts:
        names = ", ".join(f"{name}.jsonl" for name in _NAMES)
        raise CollectionError(f"{folder}: no queries; the kind {kind} needs one of {names}, plain or gzip")
    return Dataset(kind, provenance, folder, collection, parts)


def _query_files(folder: Path) -> dict[str, Path]:
    return found_splits(folder, _NAMES, ".jsonl")


def _is_layout(folder: Path) -> bool:
    files = _query_files(folder).values()
    return found(folder, "documents.jsonl") is not None or any("docs" in first_fields(path) for path in files)


def _has_ids(folder: Path) -> bool:
    files = _query_files(folder).values()
    fields = [first_fields(path) for path in files]
    if files and not any(fields):  # what it is cannot be known, and what is wrong can
        for path in files:
            check_objects(path)
    return any(names & set(ID_FIELDS) for names in fields)


def _is_atomic(topic: Topic) -> bool:
    """Whether a query is of the template ``_``; augmented queries may lack both template and marks."""
    return isinstance(topic.expression, Atom) and topic.group in ("_", None)


def _is_of(domains: tuple[str, ...], topic: Topic) -> bool:
    return topic.metadata.get("domain") in domains


def _is_atomic_of(domains: tuple[str, ...], topic: Topic) -> bool:
    return _is_of(domains, topic) and _is_atomic(topic)


class _Selection:
    """Some queries of some files.

    Args:
        files: The files by name.
        keep: Tells the queries to keep.
        pooled: The files' names precede the query ids, which QUEST's files begin anew.
    """

    def __init__(self, files: Mapping[str, Path], keep: Callable[[Topic], bool], pooled: bool = False) -> None:
        self._files = files
        self._keep = keep
        self._pooled = pooled

    def split(self, documents: Callable[[], Iterator[SourceDocument]]) -> Split:
        return Split(documents, self._topics, self._qrels)

    def _topics(self) -> list[Topic]:
        topics = [
            replace(topic, qid=self._id(name, topic.qid))
            for name, path in self._files.items()
            for topic in read_topics(path)
            if self._keep(topic)
        ]
        if not topics:
            raise CollectionError(f"{', '.join(map(str, self._files.values()))}: no query that belongs to this split")
        return topics

    def _qrels(self) -> Qrels:
        kept = {topic.qid for topic in self._topics()}
        judgements = (
            (self._id(name, qid), judged)
            for name, path in self._files.items()
            for qid, judged in read_qrels(path).items()
        )
        return {qid: judged for qid, judged in judgements if qid in kept}

    def _id(self, name: str, qid: str) -> str:
        return f"{name}-{qid}" if self._pooled else qid
