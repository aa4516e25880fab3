"""NevIR's pairs: two documents that a negation sets apart, and a query that asks for each.

A pair ``ID`` becomes the queries ``ID-q1`` and ``ID-q2`` and the documents ``ID-doc1`` and ``ID-doc2``. For each query
its own document is relevant, and the other one is judged 0. The documents of a split are those of its own pairs.

Source: Weller, Lawrie, Van Durme 2024, NevIR.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.datasets.dataset import Dataset, Split
from pyserini_compneg.datasets.layout import first_fields, found_splits
from pyserini_compneg.datasets.qrels import Qrels
from pyserini_compneg.datasets.records import checked_id
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.expression import Atom
from pyserini_compneg.files import decoded_line, iter_blocks, iter_jsonl

_NAMES = ("train", "validation", "val", "dev", "test")
_TEXTS = ("q1", "q2", "doc1", "doc2")
_PROVENANCE = "NevIR, orionw/NevIR (MIT); its passages from CondaQA (Apache-2.0)"


class _Pair(NamedTuple):
    identifier: str
    q1: str
    q2: str
    doc1: str
    doc2: str
    metadata: dict[str, str]
    source: str


def is_nevir(folder: Path) -> bool:
    """Whether a folder has CSV files named like NevIR's, or JSON Lines with its fields."""
    csv_files, jsonl_files = _files(folder)
    return bool(csv_files) or any(first_fields(path) & set(_TEXTS) for path in jsonl_files.values())


def open_nevir(folder: Path) -> Dataset:
    """The pairs: a split for each file; where there are both, CSV, the official form.

    Raises:
        CollectionError: There is no file.
    """
    csv_files, jsonl_files = _files(folder)
    files = {name: path for name in _NAMES if (path := csv_files.get(name) or jsonl_files.get(name))}
    if not files:
        raise CollectionError(f"{folder}: no pairs; the kind nevir needs {', '.join(_NAMES)}, each .csv or .jsonl")
    parts = {
        name: Split(partial(_documents, path), partial(_topics, path), partial(_qrels, path))
        for name, path in files.items()
    }
    return Dataset("nevir", _PROVENANCE, folder, None, parts)


def _files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    return found_splits(folder, _NAMES, ".csv"), found_splits(folder, _NAMES, ".jsonl")


def _documents(path: Path) -> Iterator[SourceDocument]:
    for pair in _pairs(path):
        yield SourceDocument(f"{pair.identifier}-doc1", pair.doc1, None, pair.source)
        yield SourceDocument(f"{pair.identifier}-doc2", pair.doc2, None, pair.source)


def _topics(path: Path) -> list[Topic]:
    return [
        Topic(f"{pair.identifier}-{name}", text, Atom(text), source=pair.source, metadata=pair.metadata, plain=True)
        for pair in _pairs(path)
        for name, text in (("q1", pair.q1), ("q2", pair.q2))
    ]


def _qrels(path: Path) -> Qrels:
    return {
        f"{pair.identifier}-q{own}": {f"{pair.identifier}-doc{number}": int(number == own) for number in (1, 2)}
        for pair in _pairs(path)
        for own in (1, 2)
    }


def _pairs(path: Path) -> Iterator[_Pair]:
    rows = _csv_rows(path) if path.name.removesuffix(".gz").endswith(".csv") else _jsonl_rows(path)
    first: dict[str, str] = {}
    for source, row in rows:
        pair = _pair(row, source)
        if pair.identifier in first:
            raise CollectionError(
                f"{source}: the pair {pair.identifier!r} is given twice, first at {first[pair.identifier]}"
            )
        first[pair.identifier] = source
        yield pair
    if not first:
        raise CollectionError(f"{path}: no pairs")


def _pair(row: Mapping[str, Any], source: str) -> _Pair:
    if "id" not in row:
        raise CollectionError(f"{source}: no `id`; expected the fields id, {', '.join(_TEXTS)}")
    identifier = checked_id(row["id"], "pair id", source, CollectionError)
    for name in _TEXTS:
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise CollectionError(f"{source}: `{name}` must be a text that is not blank, got {row.get(name)!r:.60}")
    metadata = {"pair": identifier}
    if isinstance(row.get("source"), str):
        metadata["source"] = row["source"]
    q1, q2, doc1, doc2 = (row[name].strip() for name in _TEXTS)
    return _Pair(identifier, q1, q2, doc1, doc2, metadata, source)


def _jsonl_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, record in iter_jsonl(path):
        yield f"{path}:{number}", record


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows after the first, each with the line where it begins; a quoted text may have several."""
    reader = csv.reader(_csv_lines(path), strict=True)
    header: list[str] | None = None
    while True:
        source = f"{path}:{reader.line_num + 1}"
        try:
            row = next(reader, None)
        except csv.Error as cause:
            raise CollectionError(f"{source}: broken CSV: {cause}") from None
        if row is None:
            return
        if header is None:
            header = _checked_header(row, source)
        elif row and len(row) != len(header):
            raise CollectionError(f"{source}: expected the {len(header)} columns of the first line, found {len(row)}")
        elif row:
            yield source, dict(zip(header, row, strict=True))


def _checked_header(columns: list[str], source: str) -> list[str]:
    expected = ("id", *_TEXTS)
    missing = [name for name in expected if name not in columns]
    if missing:
        wanted = f"expected id,WorkerId,{','.join(_TEXTS)}"
        raise CollectionError(f"{source}: no column {', '.join(missing)}; {wanted}, found {','.join(columns):.80}")
    return columns


def _csv_lines(path: Path) -> Iterator[str]:
    for first, block in iter_blocks(path):
        lines = block.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, first):
            yield decoded_line(line, f"{path}:{number}") + "\n"
