"""Reading and writing text files: plain or gzip, with one-line errors that name the path and the line.

Everything that this package reads line by line comes through :func:`iter_lines` or :func:`iter_jsonl`, and everything
that it writes goes through :func:`atomic_writer`, so that an interrupted command never leaves half a result.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from pyserini_compneg.errors import CollectionError, CompNegError, OutputError
from pyserini_compneg.json_objects import parse_json_object

_GZIP_MAGIC = b"\x1f\x8b"
_PACKED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<zip>PK\x03\x04)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)"
)
_BLOCK_BYTES = 1 << 20
_ELSEWHERE = "choose another place with --output"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def source_name(path: str | Path) -> str:
    """How messages call an input: its path, or ``stdin`` for ``-``."""
    return "stdin" if str(path) == "-" else str(path)


def iter_lines(path: str | Path, error: type[CompNegError] = CollectionError) -> Iterator[tuple[int, str]]:
    """The lines that hold more than white space, each with its number from 1 and without its line end.

    A line ends at a line feed and nowhere else: U+2028 and its kin are text.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``path:line``.
    """
    name = source_name(path)
    for first, block in iter_blocks(path, error):
        for number, line in enumerate(block.split(b"\n"), first):
            text = decoded_line(line, f"{name}:{number}", error)
            if text and not text.isspace():
                yield number, text


def decoded_line(line: bytes, source: str, error: type[CompNegError] = CollectionError) -> str:
    """The text of a line, without its end.

    Raises:
        CompNegError: Of the class ``error``, for what is no UTF-8 text; the message starts with ``source``.
    """
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as cause:
        raise error(f"{source}: not UTF-8 text: {cause.reason} at byte {cause.start + 1}") from None
    if "\0" in text:
        raise error(f"{source}: a NUL character, so this is no text file")
    return text


def iter_blocks(path: str | Path, error: type[CompNegError] = CollectionError) -> Iterator[tuple[int, bytes]]:
    """Whole lines in blocks of about a megabyte, unpacked, each with the number of its first line, from 1.

    The last block may end without a line feed. A byte order mark at the start of the file is left out.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``path``.
    """
    name = source_name(path)
    number, rest = 1, bytearray()
    with _open_bytes(path, error) as data:
        try:
            while chunk := data.read(_BLOCK_BYTES):
                if number == 1 and not rest:
                    _refuse_packed(chunk, name, error)
                end = len(rest) + chunk.rfind(b"\n") + 1
                rest += chunk
                if end > len(rest) - len(chunk):
                    block = bytes(rest[:end])
                    del rest[:end]
                    yield number, block.removeprefix(codecs.BOM_UTF8) if number == 1 else block
                    number += block.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
            raise error(f"{name}:{number + rest.count(10)}: broken gzip data: {cause}") from None
        except OSError as cause:
            raise error(f"{name}: cannot be read: {(cause.strerror or str(cause)).lower()}") from None
    if number == 1 and b"\r" in rest.strip():
        raise error(f"{name}:1: lines end in carriage returns alone; convert them to line feeds")
    if rest:
        yield number, bytes(rest).removeprefix(codecs.BOM_UTF8) if number == 1 else bytes(rest)


def iter_jsonl(path: str | Path, error: type[CompNegError] = CollectionError) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, each with its line number; blank lines are skipped.

    Raises:
        CompNegError: Of the class ``error``, for a line that is no JSON object; the message starts with ``path:line``.
    """
    for number, line in iter_lines(path, error):
        yield number, parse_json_object(line, f"{source_name(path)}:{number}", error)


@contextmanager
def atomic_writer(path: str | Path | None, remedy: str = _ELSEWHERE) -> Iterator[TextIO]:
    """A text handle whose file appears complete or not at all.

    The text goes to a temporary file in the same folder, opened on entry so that an unwritable place is known before
    the work starts; it takes the final name on a clean exit and is removed on any exception. An existing file is
    kept until then. A device or a pipe, such as ``/dev/null``, is written directly.

    Args:
        path: The file; ``None`` or ``-`` is standard output.
        remedy: What the message tells the user to do where the place cannot be written.

    Raises:
        OutputError: The place cannot be written, or the disk is full.
    """
    if path is None or str(path) == "-":
        with _standard_output():
            yield sys.stdout
        return
    direct = os.path.exists(path) and not os.path.isdir(path) and not stat.S_ISREG(os.stat(path).st_mode)
    target = Path(path) if direct else Path(os.path.realpath(path))
    _check_target(target, path)
    written = target if direct else target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        handle = open(written, "w" if direct else "x", encoding="utf-8", newline="\n")  # noqa: SIM115
    except OSError as cause:
        raise _unwritable(path, cause, remedy) from None
    try:
        with handle:
            yield handle
            if not direct:
                handle.flush()
                os.fsync(handle.fileno())
        if not direct:
            os.replace(written, target)
    except BaseException as cause:
        if not direct:
            written.unlink(missing_ok=True)
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL:
            raise _unwritable(path, cause, remedy) from None
        raise


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except OSError as cause:
        if cause.errno in _DISK_FULL:
            raise OutputError(f"standard output: {(cause.strerror or str(cause)).lower()}") from None
        raise


def keep_inputs(output: str | Path | None, *inputs: str | Path, remedy: str = _ELSEWHERE) -> None:
    """Makes sure that an output does not replace what it is made from.

    Args:
        output: The file to write; ``None`` or ``-`` is standard output.
        inputs: Files, and folders, in which nothing may be written.
        remedy: What the message tells the user to do.

    Raises:
        OutputError: The output is one of the inputs, or in one.
    """
    if output is None or str(output) == "-":
        return
    for source in inputs:
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(source)):
            raise OutputError(f"{output}: would overwrite {source}; {remedy}")


def _check_target(target: Path, path: str | Path) -> None:
    """Says in our words what ``open`` would say of the temporary file, whose name means nothing to the user."""
    if target.is_dir():
        raise OutputError(f"{path}: cannot be written: it is a folder; name a file in it")
    if not target.parent.is_dir():
        raise OutputError(f"{path}: cannot be written: there is no folder {target.parent}; create it first")


def _unwritable(path: str | Path, cause: OSError, remedy: str) -> OutputError:
    reason = (cause.strerror or str(cause)).lower()
    return OutputError(f"{path}: cannot be written: {reason}; {remedy}")


@contextmanager
def _open_bytes(path: str | Path, error: type[CompNegError]) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file or of standard input, which is not closed."""
    if str(path) == "-" and sys.stdin is None:
        raise error("stdin: it is closed")
    if str(path) == "-":
        yield _unpacked(sys.stdin.buffer)
        return
    try:
        raw = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except IsADirectoryError:
        raise error(f"{path}: a folder, expected a file") from None
    except OSError as cause:
        raise error(f"{path}: cannot be read: {(cause.strerror or str(cause)).lower()}") from None
    with raw:
        yield _unpacked(raw)


def _unpacked(raw: Any) -> Any:
    """``raw``, through gzip when its first bytes say so; a file's name may lie and a pipe has none."""
    packed = raw.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)] == _GZIP_MAGIC
    return gzip.GzipFile(fileobj=raw) if packed else raw


def _refuse_packed(start: bytes, name: str, error: type[CompNegError]) -> None:
    """Names the compression of what is still compressed, be it after :func:`_unpacked`."""
    if found := _PACKED.match(start):
        if found.lastgroup == "gzip":
            raise error(f"{name}: compressed twice with gzip; unpack it once")
        raise error(f"{name}: compressed as {found.lastgroup}, which is not read; unpack it, or compress it with gzip")


def slug(text: str) -> str:
    """A name for files: letters, digits, dots and dashes.

    >>> slug("CPT + max pool, NRF (λ = 0.25)")
    'cpt-max-pool-nrf-λ-0.25'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-") or "unnamed"
