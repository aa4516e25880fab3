"""Reads collections: one file or a folder of them, plain or gzip, in one of the formats of ``formats``."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from pyserini_compneg.documents.formats import SUFFIXES, CollectionFile, Format, guessed_format
from pyserini_compneg.documents.unread_fields import unread_fields
from pyserini_compneg.documents.vector_files import SHARD_NAME, VECTORS_FILE, Shard
from pyserini_compneg.lucene import LONGEST_TERM_BYTES, is_index
from pyserini_compneg.support.errors import ArgumentError, ClusterError, InputError
from pyserini_compneg.support.files import decoded_line, reason_of
from pyserini_compneg.support.json_objects import json_kind, parse_json_object
from pyserini_compneg.support.progress import DOCUMENTS, progress
from pyserini_compneg.support.records import DOCUMENT_ID_FIELDS, checked_id, docid_from_title
from pyserini_compneg.support.terminal import shown

_logger = logging.getLogger(__name__)
_EXPECTED = "`contents`, `title` and `text`, or `vector`"
_WITHOUT_FORMAT: tuple[tuple[Format, ...], ...] = (("jsonl",), ("csv", "tsv"))
"""What a folder is read as, if nobody says so: tables only where there is no JSON, since they may be judgements."""


Fingerprint: TypeAlias = Sequence[Sequence[str | int]]
"""See :func:`fingerprint`."""


class Block(NamedTuple):
    """Some documents of a file, each as a line of JSON.

    Attributes:
        file: The file.
        number: The file's position in the collection, from 0.
        first_line: The number of the first line, from 1; that in the file, but in a JSON list each document is a line.
        lines: The lines, UTF-8.
        faults: What is wrong with documents that have no JSON, by the number of their line, which is blank.
    """

    file: CollectionFile
    number: int
    first_line: int
    lines: bytes
    faults: Mapping[int, str] = MappingProxyType({})

    @property
    def end(self) -> tuple[int, int]:
        """Where the next block starts, if there is one. The last line of a file may lack its line feed."""
        return self.number, self.first_line + self.lines.count(b"\n") + (not self.lines.endswith(b"\n"))

    @property
    def name(self) -> str:
        """What stands before a line's number in messages, with replacements for bytes that are no text."""
        text = os.fsencode(self.file.document).decode(errors="replace")
        return "".join(character if character.isprintable() else "\ufffd" for character in text)

    def numbered(self) -> Iterator[tuple[str, bytes]]:
        """Each line with its ``path:line``."""
        for number, line in enumerate(self.lines.split(b"\n"), self.first_line):
            yield f"{self.name}:{number}", line


class Part(NamedTuple):
    """What a shard of a collection consists of: files, and in each of them some of its lines.

    Attributes:
        files: The files.
        lines: Which lines of each.
    """

    files: Sequence[CollectionFile]
    lines: Shard = Shard()


class SourceDocument(NamedTuple):
    """A document of a collection: a text, a vector, or both.

    Attributes:
        docid: Its id.
        text: ``contents``, or ``title`` and ``text``; None if there is none of these fields.
        vector: The vector that came with it, unchecked.
        source: ``path:line``, for messages.
        unread: Other fields with words that are not in ``text``.
    """

    docid: str
    text: str | None
    vector: Mapping[str, Any] | None
    source: str
    unread: tuple[str, ...] = ()


def iter_collection_blocks(
    files: Sequence[CollectionFile],
    start: tuple[int, int] = (0, 1),
    most_lines: int | None = None,
    shard: Shard = Shard(),  # noqa: B008  # it is immutable
) -> Iterator[Block]:
    """The blocks of the files from a certain line on.

    Args:
        files: The files of the collection.
        start: The number of a file, and the number of a line in it.
        most_lines: How many lines a block has at most; None for blocks of a megabyte.
        shard: The lines that are wanted; others are blank.

    Raises:
        InputError: A file that cannot be read; the message starts with its path.
    """
    first_file, first_line = start
    for number, file in enumerate(files[first_file:], first_file):
        for line, lines, faults in file.iter_lines():
            before = max(0, first_line - line) if number == first_file else 0
            unread = lines.split(b"\n", before)[before:] if before else [lines]
            if unread and unread[0]:
                most = most_lines and most_lines * shard.count
                for block in _parts(Block(file, number, line + before, unread[0], faults), most):
                    yield _only(block, shard)


def _parts(block: Block, most_lines: int | None) -> Iterator[Block]:
    if most_lines is None:
        yield block
        return
    lines = re.findall(rb"[^\n]*\n|[^\n]+$", block.lines)
    for start in range(0, len(lines), most_lines):
        part, first = b"".join(lines[start : start + most_lines]), block.first_line + start
        faults = {line: fault for line, fault in block.faults.items() if 0 <= line - first < most_lines}
        yield block._replace(first_line=first, lines=part, faults=faults)


def _only(block: Block, shard: Shard) -> Block:
    """A block with the lines of a shard alone; the others are blank."""
    if shard.count == 1:
        return block
    lines = block.lines.split(b"\n")
    first = (shard.number - block.first_line + 1) % shard.count
    wanted = [b""] * len(lines)
    wanted[first :: shard.count] = lines[first :: shard.count]
    faults = {line: fault for line, fault in block.faults.items() if (line - 1 - shard.number) % shard.count == 0}
    return block._replace(lines=b"\n".join(wanted), faults=faults)


def collection_files(
    path: str | Path, collection_format: Format | None = None, numbers: Sequence[str] = ()
) -> list[CollectionFile]:
    """The files of a collection.

    Args:
        path: A file, or a folder.
        collection_format: Their format; None to tell by their names, and by how they begin.
        numbers: Columns of tables whose cells may be numbers.

    Raises:
        ArgumentError: An unknown format.
        InputError: There is none.
    """
    if collection_format not in (None, *SUFFIXES):
        raise ArgumentError(f"the format must be one of {', '.join(SUFFIXES)}, got {collection_format!r}")
    paths = _paths(path, collection_format)
    return [CollectionFile(file, collection_format or guessed_format(file), tuple(numbers)) for file in paths]


def say_formats(files: Sequence[CollectionFile]) -> None:
    """Logs how a collection is read, if not as JSON Lines: the fields of the first file of each format."""
    first = {file.format: file for file in reversed(files)}
    for file in first.values():
        if file.format != "jsonl":
            _logger.info("%s: %s with the fields %s", file.path, file.format, ", ".join(file.fields()))


def _paths(path: str | Path, collection_format: Format | None) -> list[Path]:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(
            f"the collection must be a path, got {shown(path)}; ImpactIndexer adds documents themselves"
        )
    root = Path(path)
    if str(path) == "-" or (root.exists() and not root.is_file() and not root.is_dir()):
        raise InputError(f"{path}: a collection is read more than once, so it must be a file or a folder, no pipe")
    if not root.exists():
        raise InputError(f"{path}: no such file") from FileNotFoundError()
    if not root.is_dir():
        return [root]
    names = [name for name in _below(root) if not name.name.startswith(".")]
    for formats in _WITHOUT_FORMAT if collection_format is None else ((collection_format,),):
        suffixes = tuple(one for format in formats for one in SUFFIXES[format])
        endings = (*suffixes, *(f"{one}.gz" for one in suffixes))
        if files := sorted(name for name in names if name.name.lower().endswith(endings) and name.is_file()):
            break
    else:
        kinds = SUFFIXES.values() if collection_format is None else [SUFFIXES[collection_format]]
        expected = ", ".join(dict.fromkeys(one for kind in kinds for one in kind))
        raise InputError(f"{path}: the folder holds no {expected} file, plain or .gz")
    _check_shards(path, files)
    names = [name for name in names if name.name != VECTORS_FILE]
    if len(files) < len(names):
        _logger.warning("%s: %d files of other kinds are left out", path, len(names) - len(files))
    return files


def parts(files: Sequence[CollectionFile], count: int) -> list[Part]:
    """Divides a collection into parts of about the same size.

    Each part has files of its own where there are as many files, so that each file is read once. Of fewer files each
    part has every ``count``-th line.

    Args:
        files: The files of the collection.
        count: The number of parts.
    """
    if len(files) < count:
        return [Part(files, Shard(number, count)) for number in range(count)]
    sizes = {file: file.path.stat().st_size for file in files}
    groups: list[list[CollectionFile]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda one: -sizes[one]):
        min(groups, key=lambda group: sum(sizes[one] for one in group)).append(file)
    return [Part([file for file in files if file in group]) for group in map(set, groups)]


def _check_shards(path: str | Path, files: Sequence[Path]) -> None:
    """Makes sure that a collection that was encoded in N shards has all N."""
    shards = [match for file in files if (match := SHARD_NAME.fullmatch(file.name))]
    counts = {int(match[2]) for match in shards}
    if len(counts) > 1:
        raise InputError(f"{path}: has shards of {' and of '.join(map(str, sorted(counts)))}; keep those of one")
    missing = sorted(set(range(max(counts, default=0))) - {int(match[1]) for match in shards})
    if missing:
        raise InputError(f"{path}: shard {missing[0]} of {max(counts)} is missing; encode it first")


def _below(root: Path) -> Iterator[Path]:
    """All files in a folder and the folders in it; a folder that is linked twice counts once, an index not at all."""
    seen = set()
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        seen.add(os.path.realpath(folder))
        folders[:] = [name for name in folders if _is_new(Path(folder, name), seen)]
        yield from (Path(folder, name) for name in names)


def _is_new(folder: Path, seen: set[str]) -> bool:
    return os.path.realpath(folder) not in seen and not (is_index(folder) or folder.name.endswith(".building"))


def _refuse(cause: OSError) -> None:
    raise InputError(f"{cause.filename}: cannot be read: {reason_of(cause)}")


def text_documents(block: Block, fields: Sequence[str] | None = None) -> tuple[dict[int, SourceDocument], list[str]]:
    """The documents with texts, by their line in the block, and the messages about all other lines.

    Args:
        block: Lines of a collection.
        fields: The fields that make the text, joined by line feeds; by default ``contents``, or ``title`` and ``text``.
    """
    documents: dict[int, SourceDocument] = {}
    problems: list[str] = []
    for number, (source, line) in enumerate(block.numbered()):
        try:
            if fault := block.faults.get(block.first_line + number):
                raise InputError(fault)
            text = decoded_line(line, source)
            if text and not text.isspace():
                documents[number] = _text_document(text, source, fields)
        except InputError as error:
            problems.append(str(error))
    return documents, problems


def has_vectors(files: Sequence[CollectionFile]) -> bool | None:
    """Whether documents bring vectors. The first document that can be read and has a vector or a text decides.

    None if there is no such document. What is wrong with them is then said where they are read.
    """
    for block in iter_collection_blocks(files):
        for source, line in block.numbered():
            with suppress(InputError):
                record = parse_json_object(decoded_line(line, source), source, repeated_keys=True)
                if "vector" in record:
                    return True
                if any(field in record for field in ("contents", "title", "text")):
                    return False
    return None


def fields_found(part: Part, fields: Collection[str]) -> set[str]:
    """Those of some fields that documents of a part have; it is read no further than until all are found."""
    missing = set(fields)
    with progress(None, None, DOCUMENTS, "looking for filter fields") as bar:
        for block in iter_collection_blocks(part.files, shard=part.lines):
            for source, line in block.numbered():
                with suppress(InputError):  # which is said where documents are indexed
                    record = parse_json_object(decoded_line(line, source), source, repeated_keys=True) if line else {}
                    missing -= {field for field in missing if record.get(field) not in (None, "", [])}
                if not missing:
                    return set(fields)
            bar.update(block.lines.count(b"\n"))
    return set(fields) - missing


def fingerprint(files: Sequence[CollectionFile]) -> list[list[str | int]]:
    """What tells whether a collection has changed: the names, sizes, times of change and formats of its files."""
    return [
        [str(path.resolve()), status.st_size, status.st_mtime_ns, *([format] if format != "jsonl" else [])]
        for path, format, _ in files
        for status in [path.stat()]
    ]


def check_same(files: Sequence[CollectionFile], sources: Fingerprint) -> None:
    """Makes sure that files are those whose fingerprint another process has taken, on whichever machine.

    Raises:
        ClusterError: They are not, or cannot be read.
    """
    try:
        here = fingerprint(files)
    except OSError as cause:
        raise ClusterError(f"{cause.filename}: cannot be read: {reason_of(cause)}") from cause
    ours, theirs = ([row[1:] for row in rows] for rows in (here, sources))
    if ours != theirs:
        pairs = zip(files, ours, theirs, strict=False)  # there may be more of them on one machine
        changed = next((file for file, mine, other in pairs if mine != other), files[-1])
        raise ClusterError(
            f"{changed.path}: is on {socket.gethostname()} not the file that the command has read, by its size or time "
            "of change; let all parts read the same files, and change none meanwhile"
        )


def _text_document(line: str, source: str, fields: Sequence[str] | None) -> SourceDocument:
    document = source_document(line, source, fields)
    if document.text is None:
        raise InputError(
            f"{source}: only a `vector`, where texts are encoded; give the model that made it as --encoder"
        )
    return document


def source_document(line: str, source: str, fields: Sequence[str] | None = None) -> SourceDocument:
    """The document on a line.

    Args:
        line: The JSON object.
        source: ``path:line``, for messages.
        fields: See :func:`text_documents`.

    Raises:
        InputError: There is none.
    """
    record = parse_json_object(line, source, repeated_keys=True)  # as documents with vectors are read
    vector = record.get("vector")
    if vector is not None and not isinstance(vector, dict):
        raise InputError(f"{source}: `vector` must be a JSON object, got {json_kind(vector)}")
    text = text_of(record, source, fields)
    if text is None and vector is None:
        named = ", ".join(f"`{field}`" for field in fields or ())
        raise InputError(f"{source}: no text; expected {named or _EXPECTED}")
    unread = unread_fields(record, text) if text is not None and not fields else ()
    return SourceDocument(_docid(record, source), text, vector, source, unread)


def _docid(record: Mapping[str, Any], source: str) -> str:
    field = next((field for field in DOCUMENT_ID_FIELDS if field in record), None)
    if field is not None:
        docid = checked_id(record[field], "document id", source, InputError)
    elif isinstance(record.get("title"), str) and record["title"].strip():
        docid = docid_from_title(record["title"])
    else:
        raise InputError(f"{source}: no document id; expected one of the fields {', '.join(DOCUMENT_ID_FIELDS)}")
    if len(docid.encode()) > LONGEST_TERM_BYTES:
        raise InputError(f"{source}: the document id has more than {LONGEST_TERM_BYTES} bytes")
    return docid


def text_of(record: Mapping[str, Any], source: str, fields: Sequence[str] | None = None) -> str | None:
    """The text of a document's JSON object; None if it has none of the fields.

    Args:
        record: The object.
        source: What to call it in messages.
        fields: See :func:`text_documents`.

    Raises:
        InputError: A field that is no text.
    """
    fields = fields or (("contents",) if "contents" in record else ("title", "text"))
    parts = {field: record[field] for field in fields if record.get(field) is not None}
    for field, part in parts.items():
        if not isinstance(part, str):
            raise InputError(f"{source}: `{field}` must be a text, got {json_kind(part)}")
    return "\n".join(parts.values()) if parts else None
