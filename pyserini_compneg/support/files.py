"""Reads text files, plain, gzip or xz, with one-line errors that name the path and the line.

All files that this package reads by lines are read through :func:`iter_lines` or :func:`iter_jsonl`.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.json_objects import parse_json_object

_GZIP_MAGIC, _XZ_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\0"
_PACKED = {".gz": ("gzip", _GZIP_MAGIC), ".xz": ("xz", _XZ_MAGIC)}
_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<zip>PK\x03\x04)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)"
)
_BINARY = re.compile(
    rb"(?P<parquet>PAR1[\0-\x08\x0e-\x1f])|(?P<arrow>ARROW1\0|\xff{4}.{3}\0)|(?P<tar>.{257}ustar(?:  )?\0)", re.DOTALL
)
"""A stream of Arrow, as ``save_to_disk`` writes it, begins with four bytes of ones and a length."""
_REMEDIES = {
    "parquet": "index, update and encode take it as a collection of documents; convert others to JSON Lines or TSV",
    "arrow": "write it as parquet or JSON Lines; datasets.load_from_disk(FOLDER) reads a saved dataset",
    "tar": "unpack it, and give the folder or a file of it",
}
_BLOCK_BYTES = 1 << 20


def cache_home() -> Path:
    """``$COMPNEG_CACHE``, or ``pyserini_compneg`` in the user's cache folder."""
    if folder := os.environ.get("COMPNEG_CACHE"):
        return Path(os.path.expanduser(folder))  # unlike Path's, keeps a ~ of an unknown user
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyserini_compneg"


def source_name(path: str | Path) -> str:
    """The name of an input in messages: its path, or ``stdin`` for ``-``."""
    return "stdin" if str(path) == "-" else str(path)


def reason_of(error: Exception) -> str:
    """The reason why a file cannot be read or written, starting in lower case: ``permission denied``."""
    reason = getattr(error, "strerror", None) or str(error)
    return reason[:1].lower() + reason[1:]


def iter_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, each with its number from 1 and without its line end.

    Only a line feed ends a line: U+2028 and similar characters are text.
    """
    name = source_name(path)
    for first, block in iter_blocks(path):
        for number, line in enumerate(block.split(b"\n"), first):
            text = decoded_line(line, f"{name}:{number}")
            if text and not text.isspace():
                yield number, text


def decoded_line(line: bytes, source: str) -> str:
    """The text of a line, without its end."""
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as cause:
        raise InputError(f"not UTF-8 text: {cause.reason} at byte {cause.start + 1}", where=source) from None
    if "\0" in text:
        raise InputError("a NUL character, so this is not a text file", where=source)
    if text.startswith("\ufeff"):
        raise InputError("a byte order mark where no file begins", where=source, remedy="remove it")
    return text


def iter_blocks(path: str | Path, label: str = "") -> Iterator[tuple[int, bytes]]:
    """The decompressed file in blocks of whole lines, about a megabyte each, with the number of the first line, from 1.

    The last block may end without a line feed. A byte order mark at the start of the file is left out. ``label`` is
    that of :func:`iter_chunks`.
    """
    name = label or source_name(path)
    number, unfinished = 1, bytearray()
    for chunk in iter_chunks(path, label):
        before, feed, after = chunk.rpartition(b"\n")
        if feed:
            block = bytes(unfinished) + before + feed
            yield number, block
            number += block.count(b"\n")
            unfinished.clear()
        unfinished += after
    if number == 1 and b"\r" in unfinished.strip():
        raise InputError("lines end in carriage returns alone", where=f"{name}:1", remedy="convert them to line feeds")
    if unfinished:
        yield number, bytes(unfinished)


def iter_chunks(path: str | Path, label: str = "") -> Iterator[bytes]:
    """The decompressed bytes of a file in pieces of a megabyte, without a byte order mark at the start.

    A ``label`` says that the file has the bytes of a program, and replaces its path in messages. Compressed bytes are
    refused then, so that a small request cannot become a large collection.
    """
    name, feeds, first = label or source_name(path), 0, True
    with _open_bytes(path, unpacks=not label) as data:
        try:
            _refuse_cut(data, name)
            while chunk := data.read(_BLOCK_BYTES):
                if first:
                    _refuse_binary(chunk, name, unpacked=not label)
                    chunk, first = chunk.removeprefix(codecs.BOM_UTF8), False
                yield chunk
                feeds += chunk.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as cause:
            kind = "xz" if isinstance(data, lzma.LZMAFile) else "gzip"
            raise InputError(f"broken {kind} data: {cause}", where=f"{name}:{feeds + 1}") from None
        except OSError as cause:
            raise InputError(f"cannot be read: {reason_of(cause)}", where=name) from None


def iter_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, each with its line number; blank lines are skipped."""
    for number, line in iter_lines(path):
        yield number, parse_json_object(line, f"{source_name(path)}:{number}")


@contextmanager
def _open_bytes(path: str | Path, unpacks: bool) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input, which is not closed."""
    if str(path) == "-" and sys.stdin is None:
        raise InputError("it is closed", where="stdin")
    if str(path) == "-":
        yield _decompressed(sys.stdin.buffer)
        return
    try:
        raw = open(path, "rb")  # noqa: SIM115
    except (FileNotFoundError, ValueError):  # ValueError for a name with a NUL
        raise InputError("no such file", where=path) from None
    except IsADirectoryError:
        raise InputError("a folder, expected a file", where=path) from None
    except OSError as cause:
        raise InputError(f"cannot be read: {reason_of(cause)}", where=path) from None
    with raw:
        yield _decompressed(raw) if unpacks else raw


def _decompressed(raw: Any) -> Any:
    """Decompresses ``raw`` by its first bytes: the name of a file may be wrong, and a pipe has no name."""
    start = raw.peek(len(_XZ_MAGIC))
    if start.startswith(_XZ_MAGIC):
        return lzma.LZMAFile(raw)
    return gzip.GzipFile(fileobj=raw) if start.startswith(_GZIP_MAGIC) else raw


def _refuse_cut(data: Any, name: str) -> None:
    """Refuses a file that ends before its compression can be told, such as an empty ``.gz``, by its name."""
    kind, magic = _PACKED.get(os.path.splitext(name)[1].lower(), ("", b""))
    if kind and isinstance(data, io.BufferedReader):  # what has its magic is unpacked, and names its end itself
        start = data.peek(len(magic))[: len(magic)]
        if len(start) < len(magic) and magic.startswith(start):
            raise InputError(f"broken {kind} data: the file ends after {len(start)} bytes", where=f"{name}:1")


def _refuse_binary(start: bytes, name: str, unpacked: bool) -> None:
    """Names what is no text: data that is compressed, perhaps still after unpacking, parquet, Arrow, an archive."""
    if match := _COMPRESSED.match(start):
        if not unpacked:
            raise InputError(f"compressed as {match.lastgroup}, expected JSON Lines", where=name, remedy="unpack it")
        if match.lastgroup in ("gzip", "xz"):
            raise InputError("compressed twice", where=name, remedy="unpack it once")
        remedy = "unpack it, or compress it with gzip or xz"
        raise InputError(f"compressed as {match.lastgroup}, which is not read", where=name, remedy=remedy)
    if match := _BINARY.match(start):
        kind = str(match.lastgroup)
        raise InputError(f"{kind} data, no text", where=name, remedy=_REMEDIES[kind])


def content_digest(*content: bytes | str | Path, digits: int = 64) -> str:
    """The SHA-256 of contents, one after another, cut to hexadecimal digits. A path stands for the content of its file.

    >>> content_digest("ab", b"c", digits=12)
    'ba7816bf8f01'
    """
    total = hashlib.sha256()
    for part in content:
        if isinstance(part, Path):
            with part.open("rb") as data:
                hashlib.file_digest(data, lambda: total)
        else:
            total.update(part.encode() if isinstance(part, str) else part)
    return total.hexdigest()[:digits]


def slug(text: str) -> str:
    """A name for files: letters, digits, dots and dashes.

    >>> slug("CPT + max pool, NRF (λ = 0.25)")
    'cpt-max-pool-nrf-λ-0.25'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-") or "unnamed"
