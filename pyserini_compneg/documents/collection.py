"""Reads collections: a file or a folder of files, plain, gzip or xz, in one of the formats of ``formats``."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyserini_compneg.documents.folders import document_files
from pyserini_compneg.documents.formats import SUFFIXES, CollectionFile, Format, guessed_format
from pyserini_compneg.support.errors import ArgumentError, ClusterError, InputError
from pyserini_compneg.support.files import decoded_line, reason_of
from pyserini_compneg.support.json_objects import json_line, parse_json_object, titles_are_ids
from pyserini_compneg.support.progress import DOCUMENTS, progress
from pyserini_compneg.support.staging import atomic_writer, output_errors
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_logger = logging.getLogger(__name__)
VECTOR, VECTORS = "vector", "vectors"
"""The field of a document's vector, and the field of its passages' vectors."""

Fingerprint: TypeAlias = Sequence[Sequence[str | int]]
"""See :func:`fingerprint`."""

Documents: TypeAlias = str | Path | Iterable[Mapping[str, Any]] | bytes
"""A file or a folder of documents, the documents of a program, or JSON Lines."""

_LABEL = "documents"


class CollectionPart(NamedTuple):
    """A part of a collection: every ``shards``-th line of some files, from line ``number`` on. Numbers start at 0."""

    files: Sequence[CollectionFile]
    number: int = 0
    shards: int = 1


class DocumentBlock(NamedTuple):
    """Some documents of a file, each as a line of JSON.

    ``number`` is the position of the file in the collection, from 0. ``first_line`` is the number of the first line in
    the file, from 1; in a JSON list each document counts as a line. ``faults`` maps the line numbers of documents that
    could not be read to their faults. Their lines are blank.
    """

    file: CollectionFile
    number: int
    first_line: int
    lines: bytes
    faults: Mapping[int, str] = MappingProxyType({})

    @property
    def end(self) -> tuple[int, int]:
        """The position where the next block starts. The last line of a file may lack its line feed."""
        return self.number, self.first_line + self.lines.count(b"\n") + (not self.lines.endswith(b"\n"))

    @property
    def name(self) -> str:
        """The file of a document in messages, before the line number. U+FFFD replaces bytes that are not text."""
        text = os.fsencode(self.file.document).decode(errors="replace")
        return "".join(character if character.isprintable() else "\ufffd" for character in text)

    def numbered(self) -> Iterator[tuple[str, bytes]]:
        """Each line with its ``path:line``."""
        for number, line in enumerate(self.lines.split(b"\n"), self.first_line):
            yield f"{self.name}:{number}", line


def iter_collection_blocks(
    part: CollectionPart, start: tuple[int, int] = (0, 1), most_lines: int | None = None
) -> Iterator[DocumentBlock]:
    """The blocks of a part, from a given file and line on. Lines of other parts are blank.

    A block has at most ``most_lines`` lines of the part. Without this limit, it has about a megabyte.
    """
    first_file, first_line = start
    for number, file in enumerate(part.files[first_file:], first_file):
        for line, lines, faults in file.iter_lines():
            before = max(0, first_line - line) if number == first_file else 0
            unread = lines.split(b"\n", before)[before:] if before else [lines]
            if unread and unread[0]:
                block = DocumentBlock(file, number, line + before, unread[0], faults)
                for piece in _pieces(block, most_lines and most_lines * part.shards):
                    yield _only(piece, part)


def _pieces(block: DocumentBlock, most_lines: int | None) -> Iterator[DocumentBlock]:
    if most_lines is None:
        yield block
        return
    lines = re.findall(rb"[^\n]*\n|[^\n]+$", block.lines)
    for start in range(0, len(lines), most_lines):
        first = block.first_line + start
        faults = {line: fault for line, fault in block.faults.items() if 0 <= line - first < most_lines}
        yield block._replace(first_line=first, lines=b"".join(lines[start : start + most_lines]), faults=faults)


def _only(block: DocumentBlock, part: CollectionPart) -> DocumentBlock:
    """The block with the lines of a part. Other lines are blank."""
    if part.shards == 1:
        return block
    lines = block.lines.split(b"\n")
    first = (part.number - block.first_line + 1) % part.shards
    wanted = [b""] * len(lines)
    wanted[first :: part.shards] = lines[first :: part.shards]
    faults = {line: fault for line, fault in block.faults.items() if (line - 1 - part.number) % part.shards == 0}
    return block._replace(lines=b"\n".join(wanted), faults=faults)


def collection_files(
    path: str | Path, collection_format: Format | None = None, numbers: Sequence[str] = ()
) -> list[CollectionFile]:
    """The files of a collection, each with its format.

    Args:
        path: A file, or a folder of files.
        collection_format: The format of all files; None to detect it from their names and first bytes.
        numbers: The columns of tables whose cells may be numbers.

    Raises:
        InputError: There are no such files.
    """
    if collection_format not in (None, *SUFFIXES):
        raise ArgumentError(f"the format must be one of {', '.join(SUFFIXES)}, got {collection_format!r}")
    paths = _paths(path, collection_format)
    return [CollectionFile(file, collection_format or guessed_format(file), tuple(numbers)) for file in paths]


def is_iterable(collection: Documents) -> TypeIs[Iterable[Mapping[str, Any]] | bytes]:
    """Whether a collection is not a path, but the documents of a program, or JSON Lines."""
    return isinstance(collection, Iterable) and not isinstance(collection, (str, os.PathLike, Mapping))


@contextmanager
def opened_collection(
    collection: Documents, collection_format: Format | None = None, numbers: Sequence[str] = ()
) -> Iterator[list[CollectionFile]]:
    """The files of a collection. The documents of a program are in a temporary file meanwhile."""
    if not is_iterable(collection):
        yield collection_files(collection, collection_format, numbers)
        return
    with TemporaryDirectory(prefix="compneg-") as folder:
        path, remedy = Path(folder, "documents.jsonl"), "make room, or set TMPDIR"
        if isinstance(collection, bytes):
            with output_errors(path, remedy):
                path.write_bytes(collection)
        else:
            with atomic_writer(path, remedy) as handle:  # leaves errors of the program as they are
                for number, document in enumerate(collection, 1):
                    handle.write(_document_line(document, f"{_LABEL}:{number}"))
        yield [CollectionFile(path, label=_LABEL)]


def _document_line(document: object, place: str) -> str:
    if not isinstance(document, Mapping):
        what = f"a document must be a dictionary, got {shown(document)}"
        raise InputError(what, where=place, remedy='give frame.to_dict("records") for a DataFrame')
    return f"{json_line(document, place)}\n"


def say_formats(files: Sequence[CollectionFile]) -> None:
    """Logs the format and the fields of the first file of each format, except JSON Lines. Warns if there are no ids."""
    first = {file.format: file for file in reversed(files)}
    for file in first.values():
        fields = file.fields()
        if file.format != "jsonl":
            header = " without a header," if file.is_bare else ""
            _logger.info("%s: %s%s with the fields %s", file.path, file.format, header, ", ".join(fields))
        if titles_are_ids(fields):
            place = file.label or file.path
            _logger.warning("%s: documents have no ids, so their titles are their ids", place)


def _paths(path: str | Path, collection_format: Format | None) -> list[Path]:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(
            f"the collection must be a path, got {shown(path)}; build_index and update_index also take documents"
        )
    root = Path(path)
    if str(path) == "-" or (root.exists() and not root.is_file() and not root.is_dir()):
        raise InputError("a collection is read more than once, so it must be a file or a folder, no pipe", where=path)
    if not root.exists():
        raise InputError("no such file", where=path) from FileNotFoundError()
    if not root.is_dir():
        return [root]
    return document_files(root, collection_format)


def parts(files: Sequence[CollectionFile], count: int) -> list[CollectionPart]:
    """Divides a collection into parts of similar size.

    With at least as many files as parts, each part gets whole files, so each file is read once. With fewer files, each
    part gets every ``count``-th line.
    """
    if len(files) < count:
        return [CollectionPart(files, number, count) for number in range(count)]
    sizes = {file: file.path.stat().st_size for file in files}
    groups: list[list[CollectionFile]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda one: -sizes[one]):
        min(groups, key=lambda group: sum(sizes[one] for one in group)).append(file)
    return [CollectionPart([file for file in files if file in group]) for group in map(set, groups)]


def has_vectors(files: Sequence[CollectionFile]) -> bool | None:
    """Whether documents contain vectors, by the first readable document with a vector or a text; None without one."""
    found = vector_field(files)
    return None if found is None else bool(found)


def vector_field(files: Sequence[CollectionFile]) -> str | None:
    """The field of the first readable document's vectors; empty if it has a text only, None if there is none."""
    for block in iter_collection_blocks(CollectionPart(files)):
        for source, line in block.numbered():
            with suppress(InputError):
                record = parse_json_object(decoded_line(line, source), source, repeated_keys=True)
                for field in (VECTOR, VECTORS):
                    if field in record:
                        return field
                if any(field in record for field in ("contents", "title", "text")):
                    return ""
    return None


def fields_found(part: CollectionPart, fields: Collection[str]) -> set[str]:
    """Which of the given fields occur in documents of a part. Reading stops when all are found."""
    missing = set(fields)
    with progress(None, None, DOCUMENTS, "looking for filter fields") as bar:
        for block in iter_collection_blocks(part):
            for source, line in block.numbered():
                with suppress(InputError):  # reported when documents are indexed
                    record = parse_json_object(decoded_line(line, source), source, repeated_keys=True) if line else {}
                    missing -= {field for field in missing if record.get(field) not in (None, "", [])}
                if not missing:
                    return set(fields)
            bar.update(block.lines.count(b"\n"))
    return set(fields) - missing


def fingerprint(files: Sequence[CollectionFile]) -> list[list[str | int]]:
    """The names, sizes, modification times and formats of the files. If one differs, the collection has changed."""
    return [
        [str(path.resolve()), status.st_size, status.st_mtime_ns, *([format] if format != "jsonl" else [])]
        for path, format, *_ in files
        for status in [path.stat()]
    ]


def check_same(files: Sequence[CollectionFile], sources: Fingerprint) -> None:
    """Refuses files that differ from another process's fingerprint. The other process may run on another machine."""
    try:
        here = fingerprint(files)
    except OSError as cause:
        raise ClusterError(f"cannot be read: {reason_of(cause)}", where=cause.filename) from cause
    ours, theirs = ([row[1:] for row in rows] for rows in (here, sources))
    if ours != theirs:
        pairs = zip(files, ours, theirs, strict=False)  # one machine may have more files
        changed = next((file for file, mine, other in pairs if mine != other), files[-1])
        raise ClusterError(
            f"{changed.path}: is on {socket.gethostname()} not the file that the command has read, by its size or time "
            "of change; let all parts read the same files, and change none meanwhile"
        )
