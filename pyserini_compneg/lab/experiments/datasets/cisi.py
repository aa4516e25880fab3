"""The CISI collection, in SMART's format: its queries as texts, and 35 of them as Boolean expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyserini_compneg.documents.collection import SourceDocument
from pyserini_compneg.eval.qrels import Qrels
from pyserini_compneg.expression import parse_cisi
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    all_lines,
    check_queries,
    find_file,
    plain_topic,
    require_file,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines
from pyserini_compneg.topics.topics import Topic

_DOCUMENTS, _QUERIES, _JUDGEMENTS, _BOOLEAN = "CISI.ALL", "CISI.QRY", "CISI.REL", "CISI.BLN"
_ID = re.compile("[0-9]+")
_RECORD = re.compile(r"\.I\s+([0-9]+)\s*")
_SECTION = re.compile(r"\.([TAWXBKC])\s*")
_PROVENANCE = "CISI, a public test collection of the University of Glasgow (no licence stated)"


def is_cisi(folder: Path) -> bool:
    """Whether a folder has one of CISI's files."""
    return any(find_file(folder, name) for name in (_DOCUMENTS, _QUERIES, _JUDGEMENTS))


def open_cisi(folder: Path) -> Dataset:
    """CISI: the split ``all``, and ``boolean`` where its expressions are there.

    The text of a document, and of a query, is its title, if any, and its abstract.

    Raises:
        InputError: A file is missing.
    """
    all_documents, queries, judgements = (
        require_file(folder, name, "cisi") for name in (_DOCUMENTS, _QUERIES, _JUDGEMENTS)
    )
    documents = partial(_documents, all_documents)
    parts = {"all": Split(documents, partial(_topics, queries), partial(_qrels, queries, judgements))}
    if boolean := find_file(folder, _BOOLEAN):
        parts["boolean"] = Split(
            documents, partial(_boolean_topics, queries, boolean), partial(_boolean_qrels, queries, judgements, boolean)
        )
    return Dataset("cisi", _PROVENANCE, folder, None, parts)


def _documents(path: Path) -> Iterator[SourceDocument]:
    for identifier, text, source in _records(path):
        yield SourceDocument(identifier, text, None, source)


def _topics(path: Path) -> list[Topic]:
    topics = []
    for identifier, text, source in _records(path):
        if not text:
            raise InputError(f"{source}: query {identifier} has no text, neither .T nor .W")
        topics.append(plain_topic(identifier, " ".join(text.split()), source))
    return topics


def _boolean_topics(queries: Path, boolean: Path) -> list[Topic]:
    texts = {topic.qid: topic.text for topic in _topics(queries)}
    expressions = parse_cisi("\n".join(all_lines(boolean)), str(boolean))
    if not expressions:
        raise InputError(f"{boolean}: no expressions; expected lines of `#q1= #and ('birds', 'bats');`")
    unknown = [qid for qid in expressions if qid not in texts]
    if unknown:
        raise InputError(f"{boolean}: {len(unknown)} queries are not in {queries}, first {unknown[0]!r}")
    return [Topic(qid, texts[qid], expression, source=str(boolean)) for qid, expression in expressions.items()]


def _boolean_qrels(queries: Path, judgements: Path, boolean: Path) -> Qrels:
    qrels = _qrels(queries, judgements)
    return {topic.qid: qrels[topic.qid] for topic in _boolean_topics(queries, boolean) if topic.qid in qrels}


def _qrels(queries: Path, judgements: Path) -> Qrels:
    qrels: Qrels = {}
    for number, line in iter_lines(judgements):
        columns = line.split()
        if len(columns) != 4 or not all(map(_ID.fullmatch, columns[:2])):
            raise InputError(f"{judgements}:{number}: expected `query document 0 0.0`, got {line.strip()!r:.60}")
        qrels.setdefault(columns[0], {})[columns[1]] = 1
    if not qrels:
        raise InputError(f"{judgements}: no judgements; expected lines of `query document 0 0.0`")
    check_queries(_topics(queries), qrels, queries, judgements)
    return qrels


def _records(path: Path) -> Iterator[tuple[str, str, str]]:
    """Each record's number, its title and abstract as one text, and its ``path:line``."""
    seen: set[str] = set()
    identifier, source, section, lines = "", "", "", list[str]()
    for number, line in iter_lines(path):
        if record := _RECORD.fullmatch(line):
            if identifier:
                yield identifier, "\n".join(lines), source
            identifier, source, section, lines = record[1], f"{path}:{number}", "", []
            if identifier in seen:
                raise InputError(f"{source}: number {identifier} is given twice")
            seen.add(identifier)
        elif part := _SECTION.fullmatch(line):
            section = part[1]
        elif not section or not identifier:
            raise InputError(f"{path}:{number}: expected a line `.I number`, then `.W`, got {line!r:.60}")
        elif section in "TW":
            lines.append(line.strip())
    if not identifier:
        raise InputError(f"{path}: no records; expected lines of `.I number`")
    yield identifier, "\n".join(lines), source
