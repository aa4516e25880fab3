"""The CISI collection, in SMART's format: titles with abstracts, queries as texts, and judgements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import Qrels
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    check_queries,
    find_file,
    plain_topic,
    require_file,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines
from pyserini_compneg.topics import Topic

_FILES = ("CISI.ALL", "CISI.QRY", "CISI.REL")
_ID = re.compile("[0-9]+")
_RECORD = re.compile(r"\.I\s+([0-9]+)\s*")
_SECTION = re.compile(r"\.([TAWXBKC])\s*")
_PROVENANCE = "CISI, a public test collection of the University of Glasgow (no licence stated)"


def is_cisi(folder: Path) -> bool:
    return any(find_file(folder, name) for name in _FILES)


def open_cisi(folder: Path) -> Dataset:
    """CISI, with the split ``all``. The Boolean queries of ``CISI.BLN`` are not read."""
    documents, queries, judgements = (require_file(folder, name, "cisi") for name in _FILES)
    split = Split(partial(_documents, documents), partial(_topics, queries), partial(_qrels, queries, judgements))
    return Dataset("cisi", _PROVENANCE, folder, None, {"all": split})


def _documents(path: Path) -> Iterator[SourceDocument]:
    for identifier, text, source in _records(path):
        yield SourceDocument(identifier, text, source)


def _topics(path: Path) -> list[Topic]:
    topics = []
    for identifier, text, source in _records(path):
        if not text:
            raise InputError(f"query {identifier} has no text, neither .T nor .W", where=source)
        topics.append(plain_topic(identifier, " ".join(text.split()), source))
    return topics


def _qrels(queries: Path, judgements: Path) -> Qrels:
    qrels: Qrels = {}
    for number, line in iter_lines(judgements):
        columns = line.split()
        if len(columns) != 4 or not all(map(_ID.fullmatch, columns[:2])):
            expected = f"expected `query document 0 0.0`, got {line.strip()!r:.60}"
            raise InputError(expected, where=f"{judgements}:{number}")
        qrels.setdefault(columns[0], {})[columns[1]] = 1
    if not qrels:
        raise InputError("no judgements; expected lines of `query document 0 0.0`", where=judgements)
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
                raise InputError(f"number {identifier} is given twice", where=source)
            seen.add(identifier)
        elif part := _SECTION.fullmatch(line):
            section = part[1]
        elif not section or not identifier:
            raise InputError(f"expected a line `.I number`, then `.W`, got {line!r:.60}", where=f"{path}:{number}")
        elif section in "TW":
            lines.append(line.strip())
    if not identifier:
        raise InputError("no records; expected lines of `.I number`", where=path)
    yield identifier, "\n".join(lines), source
