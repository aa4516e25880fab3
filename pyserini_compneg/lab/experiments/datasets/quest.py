"""QUEST's files, and files of collections with the same fields: entities described by set expressions.

Source: Malaviya et al. 2023, QUEST. The domain split and the non-compositional subset are defined by Krasakis, Yates
and Kanoulas, section 4.1. They do not say which files they divide by domain; here, all files of the folder are divided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import Qrels, read_qrels
from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets.dataset import (
    DOMAIN,
    Dataset,
    Split,
    collection_documents,
    find_file,
    find_splits,
    first_fields,
    require_file,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.json_objects import DOCUMENT_ID_FIELDS, ID_FIELDS
from pyserini_compneg.topics import Topic, read_topics

_NAMES = ("train", "train_aug", "val", "dev", "test", "queries")
_QUEST = "QUEST, google-research/language (Apache-2.0); text from Wikipedia (CC BY-SA)"
_OTHER = "queries with ids in QUEST's fields, on documents of their own; not the benchmark QUEST"
_FILMSETS = "FilmSets, which is not QUEST, from prust/wikipedia-movie-data (MIT); text from Wikipedia (CC BY-SA)"

_GENERATED = "generated: requests by a language model, on documents of their own"
ANSWERS = "answers.jsonl"
"""The file that generated requests have beside them: what a language model answered."""

_logger = logging.getLogger(__name__)


def is_quest(folder: Path) -> bool:
    """Whether a folder has QUEST's documents or queries, and the queries have no ids."""
    return not is_filmsets(folder) and _is_layout(folder)


def is_filmsets(folder: Path) -> bool:
    """Whether a folder has documents or queries like QUEST's, and the queries have ids."""
    ids = any(first_fields(path) & {*ID_FIELDS} for path in _query_files(folder).values())
    return ids and _is_layout(folder)


def open_quest(folder: Path) -> Dataset:
    """QUEST: a split for each file, one with the atomic queries of each training file, and the domain split."""
    dataset = _opened(folder, "quest", _QUEST)
    assert dataset.of_domain is not None, "queries of QUEST have domains"
    domains = {"train": "films+books", "train-nc": "films+books-nc", "test": "plants+animals"}
    parts = {f"{DOMAIN}{name}": dataset.of_domain(those) for name, those in domains.items()}
    return replace(dataset, parts={**dataset.parts, **parts})


def open_filmsets(folder: Path) -> Dataset:
    """FilmSets and similar datasets: a split for each file, and one with the atomic queries of each training file.

    FilmSets' documents have ids; elsewhere titles may be the ids, as in QUEST. Generated requests have their answers.
    """
    if (folder / ANSWERS).is_file():
        return _opened(folder, "filmsets", _GENERATED)
    collection = find_file(folder, "documents.jsonl")
    has_ids = collection is None or first_fields(collection) & {*DOCUMENT_ID_FIELDS}
    return _opened(folder, "filmsets", _FILMSETS if has_ids else _OTHER)


def _opened(folder: Path, kind: str, provenance: str) -> Dataset:
    collection = require_file(folder, "documents.jsonl", kind)
    documents = partial(collection_documents, collection)
    parts: dict[str, Split] = {}
    for name, path in _query_files(folder).items():
        parts[name] = Split(documents, partial(read_topics, path), partial(read_qrels, path))
        if name.startswith("train"):
            parts[f"{name}-nc"] = _selection(documents, {name: path}, atomic=True)
    if not parts:
        names = ", ".join(f"{name}.jsonl" for name in _NAMES)
        raise InputError(f"no queries; the kind {kind} needs one of {names}, plain or gzip", where=folder)
    files = _divided_files(folder)
    warn = cache(_warn_of_no_domain)  # one warning for all splits of the dataset, however often they are read

    def of_domain(name: str) -> Split:
        domains = name.removesuffix("-nc")
        if not all(map(str.strip, domains.split("+"))):
            raise InputError(f"a domain without a name in {domains!r}", where=folder)
        return _selection(documents, files, domains=tuple(domains.split("+")), atomic=name != domains, warn=warn)

    return Dataset(kind, provenance, folder, collection, parts, of_domain)


def _divided_files(folder: Path) -> dict[str, Path]:
    """The files of queries that domains divide."""
    files = _query_files(folder)
    if "train_aug" in files:  # this file contains all queries of train
        files.pop("train", None)
    return files


def _query_files(folder: Path) -> dict[str, Path]:
    return find_splits(folder, _NAMES, ".jsonl")


def _is_layout(folder: Path) -> bool:
    files = _query_files(folder).values()
    return find_file(folder, "documents.jsonl") is not None or any("docs" in first_fields(path) for path in files)


def _is_atomic(topic: Topic) -> bool:
    """Whether a query has the template ``_``. Augmented queries may lack both template and marks."""
    return isinstance(topic.expression, Atom) and topic.group in ("_", None)


def _selection(
    documents: Callable[[], Iterator[SourceDocument]],
    files: Mapping[str, Path],
    *,
    atomic: bool = False,
    domains: tuple[str, ...] | None = None,
    warn: Callable[[int, int, tuple[Path, ...]], None] | None = None,
) -> Split:
    """Some queries of some files: atomic queries, queries of some domains, or both.

    With domains, the names of the files precede the query ids, because QUEST numbers the queries of each file
    separately.
    """

    def full_id(name: str, qid: str) -> str:
        return qid if domains is None else f"{name}-{qid}"

    def topics() -> list[Topic]:
        read = [
            replace(topic, qid=full_id(name, topic.qid)) for name, path in files.items() for topic in read_topics(path)
        ]
        selected = [
            topic
            for topic in read
            if (not atomic or _is_atomic(topic)) and (domains is None or topic.metadata.get("domain") in domains)
        ]
        lost = sum("domain" not in topic.metadata for topic in read)
        if warn and lost:
            warn(lost, len(read), tuple(files.values()))
        if not selected:
            there = {topic.metadata["domain"] for topic in read if "domain" in topic.metadata}
            asked = "" if domains is None else f": the domains are {', '.join(sorted(there)) or 'not given'}"
            said, remedy = f"no query that belongs to this split{asked}", domains and "choose others with --domains"
            raise InputError(said, where=", ".join(map(str, files.values())), remedy=remedy or "")
        return selected

    def qrels() -> Qrels:
        selected = {topic.qid for topic in topics()}
        judgements = {
            full_id(name, qid): judged for name, path in files.items() for qid, judged in read_qrels(path).items()
        }
        return {qid: judged for qid, judged in judgements.items() if qid in selected}

    return Split(documents, topics, qrels)


def _warn_of_no_domain(lost: int, queries: int, files: tuple[Path, ...]) -> None:
    listed = ", ".join(map(str, files))
    _logger.warning("%s: %d of %d queries name no domain, so the domain split lacks them", listed, lost, queries)
