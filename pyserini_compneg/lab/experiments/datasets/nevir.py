"""NevIR's pairs: two documents that differ by a negation, and a query for each of them.

A pair ``ID`` becomes the queries ``ID-q1`` and ``ID-q2`` and the documents ``ID-doc1`` and ``ID-doc2``. For each query
its own document is relevant, and the other document is judged 0. The documents of a split are the documents of its
pairs.

Source: Weller, Lawrie, Van Durme 2024, NevIR.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import Qrels
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    all_lines,
    find_splits,
    first_fields,
    plain_topic,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.json_objects import checked_id
from pyserini_compneg.topics import Topic

_NAMES = ("train", "validation", "val", "dev", "test")
_TEXTS = ("q1", "q2", "doc1", "doc2")
_FIELDS = ("id", *_TEXTS)
_EDITS = {"2": "scope edit", "3": "affirmation edit"}
"""The kinds of edits of the second document, keyed by CondaQA's number, which follows the passage in an id."""

EDITS = tuple(_EDITS.values())
"""The groups of the queries. A pair whose id has no such number belongs to no group."""

_PROVENANCE = "NevIR, orionw/NevIR (MIT); its passages from CondaQA (Apache-2.0)"


class _Pair(NamedTuple):
    identifier: str
    texts: dict[str, str]
    source: str


def is_nevir(folder: Path) -> bool:
    """Whether a folder has CSV files with NevIR's names, or JSON Lines with NevIR's fields."""
    if find_splits(folder, _NAMES, ".csv"):
        return True
    return any(first_fields(path) & {*_TEXTS} for path in find_splits(folder, _NAMES, ".jsonl").values())


def open_nevir(folder: Path) -> Dataset:
    """Opens each file as a split. If a split has both forms, the CSV file is read, because CSV is the official form."""
    files = find_splits(folder, _NAMES, ".jsonl") | find_splits(folder, _NAMES, ".csv")
    if not files:
        raise InputError(f"no pairs; the kind nevir needs {', '.join(_NAMES)}, each .csv or .jsonl", where=folder)
    parts = {
        name: Split(partial(_documents, path), partial(_topics, path), partial(_qrels, path))
        for name, path in sorted(files.items(), key=lambda item: _NAMES.index(item[0]))
    }
    return Dataset("nevir", _PROVENANCE, folder, None, parts)


def _documents(path: Path) -> Iterator[SourceDocument]:
    for pair in _pairs(path):
        for name in ("doc1", "doc2"):
            yield SourceDocument(f"{pair.identifier}-{name}", pair.texts[name], pair.source)


def _topics(path: Path) -> list[Topic]:
    return [
        replace(
            plain_topic(f"{pair.identifier}-{name}", pair.texts[name], pair.source, {"pair": pair.identifier}),
            group=_EDITS.get(pair.identifier.rpartition("-")[2]),
        )
        for pair in _pairs(path)
        for name in ("q1", "q2")
    ]


def _qrels(path: Path) -> Qrels:
    return {
        f"{pair.identifier}-q{own}": {f"{pair.identifier}-doc{number}": int(number == own) for number in (1, 2)}
        for pair in _pairs(path)
        for own in (1, 2)
    }


def _pairs(path: Path) -> Iterator[_Pair]:
    is_csv = path.name.removesuffix(".gz").endswith(".csv")
    rows = _csv_rows(path) if is_csv else ((f"{path}:{number}", record) for number, record in iter_jsonl(path))
    first: dict[str, str] = {}
    for source, row in rows:
        pair = _pair(row, source)
        if pair.identifier in first:
            what = f"the pair {pair.identifier!r} is given twice, first at {first[pair.identifier]}"
            raise InputError(what, where=source)
        first[pair.identifier] = source
        yield pair
    if not first:
        raise InputError("no pairs", where=path)


def _pair(row: Mapping[str, Any], source: str) -> _Pair:
    if missing := [f"`{name}`" for name in _FIELDS if name not in row]:
        raise InputError(f"no {', '.join(missing)}", where=source, remedy=f"expected the fields {', '.join(_FIELDS)}")
    identifier = checked_id(row["id"], "pair id", source)
    for name in _TEXTS:
        if not isinstance(row[name], str) or not row[name].strip():
            raise InputError(f"`{name}` must be a text that is not blank, got {row[name]!r:.60}", where=source)
    return _Pair(identifier, {name: row[name].strip() for name in _TEXTS}, source)


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows after the first, each with the line where it begins. A quoted text may have several lines."""
    reader = csv.reader((f"{line}\n" for line in all_lines(path)), strict=True)
    header: list[str] = []
    source = f"{path}:1"
    try:
        for row in reader:
            if header and row and len(row) != len(header):
                what = f"expected the {len(header)} columns of the first line, found {len(row)}"
                raise InputError(what, where=source)
            if header and row:
                yield source, dict(zip(header, row, strict=True))
            header = header or row
            source = f"{path}:{reader.line_num + 1}"
    except csv.Error as cause:
        raise InputError(f"broken CSV: {cause}", where=source) from None
