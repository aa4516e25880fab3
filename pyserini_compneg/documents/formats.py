"""The formats of a collection's files. Each is read as JSON Lines, with a document on the line where it begins."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from json.decoder import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from pyserini_compneg.documents.parquet import is_parquet, parquet_fields, parquet_rows
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_blocks, iter_chunks
from pyserini_compneg.support.json_objects import DOCUMENT_ID_FIELDS, syntax_fault, titles_are_ids
from pyserini_compneg.support.surrogates import has_half

Format = Literal["jsonl", "json", "csv", "tsv", "parquet"]
SUFFIXES: Mapping[Format, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".json"),
    "json": (".json",),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet",),
}
"""The suffixes of files in a folder, for each format. A suffix of ``PACKED`` may follow."""
PACKED = (".gz", ".xz")

_TEXT_FIELDS = ("contents", "title", "text")
_BARE = ("id", "contents")
_BARE_ID = re.compile(r"(?=\S*\d)[^\s\"']+")
_BLOCK_BYTES = 1 << 20
_LONGEST_CELL = 1 << 26
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_BLANK = re.compile(r"[ \t\r\n]*")
_LITERAL = 10
"""A syntax error this close to the end of the read text may be caused by missing text: ``-Infinity`` has 9 characters.
"""


Lines: TypeAlias = tuple[int, bytes, Mapping[int, str]]
"""Some documents as lines of JSON in UTF-8: the number of the first line, the lines, and the faults of documents by the
numbers of their lines. A line is blank if no document begins there, or if its document has a fault."""


class CollectionFile(NamedTuple):
    """A file of a collection.

    ``numbers`` are the columns of a table whose cells may be numbers; others are texts. ``label`` replaces the
    path in messages about documents.
    """

    path: Path
    format: Format = "jsonl"
    numbers: tuple[str, ...] = ()
    label: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it is TSV without a header, as MS MARCO has it: an id with a digit, a tab, and the text."""
        if self.format != "tsv":
            return False
        first = next((line for line in _decoded(self.path) if line.strip()), "")
        names = first.rstrip("\r\n").split("\t")
        return len(names) == len(_BARE) and not _has_id(names) and bool(_BARE_ID.fullmatch(names[0]))

    @property
    def document(self) -> str:
        """The place of a document in messages, without its number: "line", or "position" in a JSON list."""
        return f"{self.path}: document" if self.format == "json" else self.label or str(self.path)

    def iter_lines(self) -> Iterator[Lines]:
        """The documents, in blocks of about a megabyte."""
        if self.format == "jsonl":
            return ((first, lines, {}) for first, lines in iter_blocks(self.path, self.label))
        if self.format == "json":
            return _in_blocks((1, text, None) for text in _objects(self.path))
        if self.format == "parquet":
            return _in_blocks(parquet_rows(self.path))
        return _in_blocks(_bare_rows(self) if self.is_bare else _rows(self))

    def fields(self) -> list[str]:
        """The names of the fields, from a header or from the first document."""
        if self.is_bare:
            return list(_BARE)
        if self.format == "parquet":
            return parquet_fields(self.path)
        if self.format in ("csv", "tsv"):
            return _header(self, csv.reader(_decoded(self.path), **_dialect(self.format)))
        for _, lines, _ in self.iter_lines():
            with suppress(ValueError, RecursionError):
                first = json.loads(lines.split(b"\n", 1)[0])
                return list(first) if isinstance(first, dict) else []
        return []


def guessed_format(path: Path) -> Format:
    """The format of a file, from its name or, if the name does not tell, from its first bytes."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    by_name: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet")
    if found := next((format for format in by_name if name.endswith(f".{format}")), None):
        return found
    if is_parquet(path):
        return "parquet"
    try:
        start = next(iter_chunks(path), b"").decode("utf-8", "replace").lstrip()
    except InputError:  # reported when the file is read
        return "jsonl"
    if start.startswith("["):
        return "json"
    line, feed, _ = start.partition("\n")
    if start.startswith("{"):
        return "json" if feed and not line.rstrip().endswith("}") else "jsonl"
    separators: Mapping[Format, str] = {"tsv": "\t", "csv": ","}
    tables = (format for format, one in separators.items() if one in line and _has_id(line.strip().split(one)))
    return next(tables, "jsonl")


def _has_id(names: Sequence[str]) -> bool:
    return not {*DOCUMENT_ID_FIELDS, "title"}.isdisjoint(names)


def _in_blocks(documents: Iterable[tuple[int, bytes, str | None]]) -> Iterator[Lines]:
    """Blocks of documents. Each document has its number of lines, its JSON and its fault."""
    lines, faults, first, number = bytearray(), {}, 1, 1
    for count, text, fault in documents:
        if fault is not None:
            faults[number] = fault
        lines += text + b"\n" * count
        number += count
        if len(lines) >= _BLOCK_BYTES:
            yield first, bytes(lines), faults
            lines, faults, first = bytearray(), {}, number
    if lines:
        yield first, bytes(lines), faults


def _decoded(path: Path) -> Iterator[str]:
    """The lines of a file. Bytes that are not UTF-8 become halves of surrogate pairs."""
    for _, block in iter_blocks(path):
        for line in io.BytesIO(block):
            yield line.decode("utf-8", "surrogateescape")


def _dialect(format: Format) -> dict[str, Any]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    return {"delimiter": "\t" if format == "tsv" else ",", "strict": True}


def _rows(file: CollectionFile) -> Iterator[tuple[int, bytes, str | None]]:
    """The rows below the header, in the form that :func:`_in_blocks` takes."""
    rows = csv.reader(_decoded(file.path), **_dialect(file.format))
    header = _header(file, rows)
    yield rows.line_num, b"", None
    while True:
        before, row, fault = rows.line_num, [], None
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as cause:
            if "unexpected end" in str(cause) or "field larger" in str(cause):
                raise InputError(f"{file.path}:{before + 1}: a quote is never closed; double quotes in texts") from None
            fault = f"quotes or line ends are broken ({cause}); enclose the text in quotes, and double those in it"
        fault = fault or _fault(row, header)
        if file.format == "tsv" and any("\t" in cell and "\n" in cell for cell in row):
            fault = "a quote holds a tab and a line end, as one does that is never closed; double quotes in texts"
        text = b"" if fault or not row else _json_of(row, header, file.numbers)
        place = f"{file.path}:{before + 1}: "
        yield rows.line_num - before, text, place + fault if fault else None


def _bare_rows(file: CollectionFile) -> Iterator[tuple[int, bytes, str | None]]:
    """The lines of a file without a header. Quotes and further tabs are text."""
    for number, line in enumerate(_decoded(file.path), 1):
        docid, tab, text = line.rstrip("\r\n").partition("\t")
        row = [docid, text] if tab else []
        fault = _fault(row, _BARE) if tab or line.isspace() else "no tab between an id and a text"
        place = f"{file.path}:{number}: "
        yield 1, b"" if fault or not row else _json_of(row, _BARE, ()), place + fault if fault else None


def _header(file: CollectionFile, rows: Any) -> list[str]:
    """The names in the first row that is not blank."""
    try:
        header = [name.strip() for name in next((row for row in rows if row), [])]
    except csv.Error as cause:
        raise InputError(f"{file.path}:1: no header: {cause}") from None
    where = f"{file.path}:{rows.line_num}"
    named = ", ".join(name if name.isprintable() else ascii(name) for name in header)[:200]
    if not header:
        raise InputError("empty, expected a header with the names of the fields", where=file.path)
    if fault := _fault(header, header):
        raise InputError(f"the header: {fault}", where=where)
    if "" in header:
        raise InputError(f"column {header.index('') + 1} of the header has no name", where=where)
    if twice := next((name for name, count in Counter(header).items() if count > 1), None):
        raise InputError(f"the header has {twice!r} twice", where=where, remedy="rename one")
    if {*DOCUMENT_ID_FIELDS}.isdisjoint(header) and not titles_are_ids(header):
        expected = ", ".join(DOCUMENT_ID_FIELDS)
        raise InputError(f"the header ({named}) has no column for the id; expected one of {expected}", where=where)
    return header


def _fault(row: Sequence[str], header: Sequence[str]) -> str | None:
    if row and len(row) != len(header):
        return f"{len(row)} fields, and the header has {len(header)}; enclose texts with separators in quotes"
    if any("\0" in cell for cell in row):
        return "a NUL character, so this is not a text file"
    if any(map(has_half, row)):
        return "not UTF-8 text"
    return None


def _json_of(row: Sequence[str], header: Sequence[str], numbers: Sequence[str]) -> bytes:
    """A row as a JSON object. Empty cells are left out."""
    record: dict[str, Any] = {}
    for name, cell in zip(header, row, strict=True):
        if name in ("vector", "vectors") or (name in numbers and name not in _TEXT_FIELDS and _NUMBER.fullmatch(cell)):
            with suppress(ValueError, RecursionError):
                value = json.loads(cell)
                json.dumps([[value]], ensure_ascii=False).encode()  # half a surrogate pair, or too many brackets
                record[name] = value
                continue
        if cell:
            record[name] = cell
    return json.dumps(record, ensure_ascii=False).encode()


def _objects(path: Path) -> Iterator[bytes]:
    """The values of a JSON list, or of a sequence of JSON values, each on one line and otherwise unchanged."""
    source = _Source(path)
    listed = source.peek() == "["
    if listed:
        source.skip()
    while (character := source.peek()) and not (listed and character == "]"):
        yield source.value()
        if listed and source.peek() == ",":
            source.skip()
            if source.peek() == "]":
                raise source.fault("a comma before the end of the list")
        elif listed and source.peek() != "]":
            raise source.fault("the list does not end" if not source.peek() else "expected a comma between documents")
    if listed:
        if not source.peek():
            raise source.fault("the list does not end")
        source.skip()
        if source.peek():
            raise source.fault("more after the end of the list")


class _Source:
    """The characters of a file that are not yet parsed. Only few are in memory at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = iter_chunks(path)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scan = JSONDecoder().raw_decode
        self._text, self._at, self._line, self._ended = "", 0, 1, False

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            match = _BLANK.match(self._text, self._at)
            self._move(match.end() if match else self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self) -> None:
        self._move(self._at + 1)

    def value(self) -> bytes:
        """The next JSON value. Line ends inside the value become blanks."""
        while True:
            try:
                _, end = self._scan(self._text, self._at)
                break
            except RecursionError:
                raise self.fault("too many brackets within brackets") from None
            except JSONDecodeError as cause:
                cut = cause.pos >= len(self._text) - _LITERAL or cause.msg.startswith("Unterminated string")
                if not (cut and self._more()):
                    self._move(cause.pos)
                    raise self.fault(syntax_fault(cause)) from None
            except ValueError as cause:
                raise self.fault(syntax_fault(cause)) from None
        text = self._text[self._at : end]
        self._move(end)
        return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace")

    def fault(self, what: str) -> InputError:
        return InputError(f"{self._path}:{self._line}: {what}")

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        """Doubles the text in memory by reading on. False at the end of the file."""
        if self._ended:
            return False
        parts = [self._text[self._at :]]
        size = max(len(parts[0]), 1)
        while size > 0 and not self._ended:
            chunk = next(self._chunks, b"")
            self._ended = not chunk
            try:
                parts.append(self._decoder.decode(chunk, final=self._ended))
            except UnicodeDecodeError as cause:
                raise self.fault(f"not UTF-8 text after this line: {cause.reason}") from None
            size -= len(chunk)
        self._text, self._at = "".join(parts), 0
        return len(self._text) > len(parts[0])
