"""Reading and writing text files: plain or gzip, with one-line errors that name the path and the line.

Everything that this package reads line by line comes through :func:`iter_lines` or :func:`iter_jsonl`. Everything that
it writes goes through :func:`atomic_writer`, so that an interrupted command never leaves half a result.
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from pyserini_compneg.support.errors import CompNegError, InputError, OutputError
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.terminal import EscapedOutput

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_GZIP_MAGIC = b"\x1f\x8b"
_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<zip>PK\x03\x04)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)"
)
_BLOCK_BYTES = 1 << 20
_REMEDY = "choose another place with --output"
_TEMPORARY = re.compile(r"[0-9a-f]{8}\.tmp")

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""The errors of a file that cannot grow. What is raised for them does not name the file."""


def source_name(path: str | Path) -> str:
    """The name of an input in messages: its path, or ``stdin`` for ``-``."""
    return "stdin" if str(path) == "-" else str(path)


def reason_of(error: Exception) -> str:
    """Why a file cannot be read or written, in lower case: ``permission denied``."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def iter_lines(path: str | Path, error: type[CompNegError] = InputError) -> Iterator[tuple[int, str]]:
    """The lines that hold more than white space, each with its number from 1 and without its line end.

    A line ends at a line feed and nowhere else: U+2028 and similar characters are text.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``path:line``.
    """
    name = source_name(path)
    for first, block in iter_blocks(path, error):
        for number, line in enumerate(block.split(b"\n"), first):
            text = decoded_line(line, f"{name}:{number}", error)
            if text and not text.isspace():
                yield number, text


def decoded_line(line: bytes, source: str, error: type[CompNegError] = InputError) -> str:
    """The text of a line, without its end.

    Raises:
        CompNegError: Of the class ``error``, for a line that is no UTF-8 text; the message starts with ``source``.
    """
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as cause:
        raise error(f"{source}: not UTF-8 text: {cause.reason} at byte {cause.start + 1}") from None
    if "\0" in text:
        raise error(f"{source}: a NUL character, so this is no text file")
    if text.startswith("\ufeff"):
        raise error(f"{source}: a byte order mark where no file begins; remove it")
    return text


def iter_blocks(path: str | Path, error: type[CompNegError] = InputError) -> Iterator[tuple[int, bytes]]:
    """Whole lines in blocks of about a megabyte, decompressed, each with the number of its first line, from 1.

    The last block may end without a line feed. A byte order mark at the start of the file is left out.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``path``.
    """
    name = source_name(path)
    number, unfinished = 1, bytearray()
    for chunk in iter_chunks(path, error):
        before, feed, after = chunk.rpartition(b"\n")
        if feed:
            block = bytes(unfinished) + before + feed
            yield number, block
            number += block.count(b"\n")
            unfinished.clear()
        unfinished += after
    if number == 1 and b"\r" in unfinished.strip():
        raise error(f"{name}:1: lines end in carriage returns alone; convert them to line feeds")
    if unfinished:
        yield number, bytes(unfinished)


def iter_chunks(path: str | Path, error: type[CompNegError] = InputError) -> Iterator[bytes]:
    """The bytes of a file in pieces of a megabyte, decompressed, without a byte order mark at the start.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``path``.
    """
    name, feeds, first = source_name(path), 0, True
    with _open_bytes(path, error) as data:
        try:
            while chunk := data.read(_BLOCK_BYTES):
                if first:
                    _refuse_compressed(chunk, name, error)
                    chunk, first = chunk.removeprefix(codecs.BOM_UTF8), False
                yield chunk
                feeds += chunk.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
            raise error(f"{name}:{feeds + 1}: broken gzip data: {cause}") from None
        except OSError as cause:
            raise error(f"{name}: cannot be read: {reason_of(cause)}") from None


def iter_jsonl(path: str | Path, error: type[CompNegError] = InputError) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, each with its line number; blank lines are skipped.

    Raises:
        CompNegError: Of the class ``error``, for a line that is no JSON object; the message starts with ``path:line``.
    """
    for number, line in iter_lines(path, error):
        yield number, parse_json_object(line, f"{source_name(path)}:{number}", error)


@contextmanager
def atomic_writer(path: str | Path | None, remedy: str = _REMEDY, *, colours: bool = False) -> Iterator[TextIO]:
    """A text handle whose file appears complete or not at all.

    The text goes to a temporary file in the same folder, which is made if it is missing. Both happen on entry, so that
    an unwritable place is known before the work starts. On a clean exit the file takes the final name; on any exception
    it is removed. Until then an existing file stays as it is. A device or a pipe, such as ``/dev/null``, is written
    directly.

    Args:
        path: The file; ``None`` or ``-`` is standard output. A terminal gets escapes for what would steer it.
        remedy: What the message advises if the file cannot be written.
        colours: What is written is printable but for colours, which a terminal gets as they are.

    Raises:
        OutputError: The file cannot be written, or the disk is full.
    """
    if path is None or str(path) == "-":
        with _standard_output():
            escapes = sys.stdout.isatty() and not colours
            yield cast("TextIO", EscapedOutput(sys.stdout)) if escapes else sys.stdout
        return
    direct = os.path.exists(path) and not os.path.isdir(path) and not stat.S_ISREG(os.stat(path).st_mode)
    target = Path(path) if direct else Path(os.path.realpath(path))
    made = _make_folder(target, path, remedy)
    try:
        handle = open(target, "w", encoding="utf-8", newline="\n") if direct else _temporary_file(target)  # noqa: SIM115
    except OSError as cause:
        _remove_empty(made)
        raise OutputError(f"{path}: cannot be written: {reason_of(cause)}; {remedy}") from None
    written = Path(handle.name)
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
            _remove_empty(made)
        if isinstance(cause, OSError) and cause.errno in DISK_FULL:
            raise OutputError(f"{path}: cannot be written: {reason_of(cause)}; {remedy}") from None
        raise


def _temporary_file(target: Path) -> TextIO:
    """A new hidden file beside the target, locked while it is open."""
    prefix = f".{target.name[:200]}."
    with suppress(OSError):  # a folder that can be written, not read
        for path in target.parent.iterdir():
            if path.name.startswith(prefix) and _TEMPORARY.fullmatch(path.name[len(prefix) :]):
                _remove_what_is_left(path)
    while True:
        path = target.with_name(f"{prefix}{secrets.token_hex(4)}.tmp")
        handle = open(path, "x", encoding="utf-8", newline="\n")  # noqa: SIM115
        with suppress(OSError):  # some file systems of a network have no locks; there nothing is removed either
            _lock(handle)
        if path.exists():  # nobody took it for one that was left, before it was locked
            return handle
        handle.close()


def _remove_what_is_left(path: Path) -> None:
    """Removes a temporary file, but not that of a living process."""
    with suppress(OSError), path.open("rb") as left:
        _lock(left)
        path.unlink()


def _lock(file: IO[Any]) -> None:
    """Locks a file until it is closed or its process ends.

    Raises:
        OSError: Another process holds it, or there are no such locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOLCK, "no locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except OSError as cause:
        if cause.errno in DISK_FULL | {errno.EBADF, errno.EIO}:
            raise OutputError(of_standard_output(cause)) from None
        raise


def of_standard_output(error: OSError) -> str:
    """Why standard output cannot be written."""
    return f"standard output: {'it is closed' if error.errno == errno.EBADF else reason_of(error)}"


def keep_inputs(output: str | Path | None, *inputs: str | Path, remedy: str = _REMEDY) -> None:
    """Makes sure that an output does not replace what it is made from.

    Args:
        output: The file to write; ``None`` or ``-`` is standard output.
        inputs: Files, and folders, in which nothing may be written.
        remedy: What the message advises.

    Raises:
        OutputError: The output is one of the inputs, or in one.
    """
    if output is None or str(output) == "-":
        return
    for source in inputs:
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(source)):
            raise OutputError(f"{output}: would overwrite {source}; {remedy}")


def _make_folder(target: Path, path: str | Path, remedy: str) -> list[Path]:
    """Makes the folder of a file that is to be written; returns the folders that were missing, the innermost first."""
    if target.is_dir():
        raise OutputError(f"{path}: cannot be written: it is a folder; name a file in it")
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        _remove_empty(missing)
        raise OutputError(f"{path}: cannot be written: {target.parent}: {reason_of(cause)}; {remedy}") from None
    return missing


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _open_bytes(path: str | Path, error: type[CompNegError]) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file or of standard input, which is not closed."""
    if str(path) == "-" and sys.stdin is None:
        raise error("stdin: it is closed")
    if str(path) == "-":
        yield _decompressed(sys.stdin.buffer)
        return
    try:
        raw = open(path, "rb")  # noqa: SIM115
    except (FileNotFoundError, ValueError):  # the latter for a name with a NUL
        raise error(f"{path}: no such file") from None
    except IsADirectoryError:
        raise error(f"{path}: a folder, expected a file") from None
    except OSError as cause:
        raise error(f"{path}: cannot be read: {reason_of(cause)}") from None
    with raw:
        yield _decompressed(raw)


def _decompressed(raw: Any) -> Any:
    """``raw``, through gzip if its first bytes say so: a file's name may be wrong, and a pipe has none."""
    compressed = raw.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)] == _GZIP_MAGIC
    return gzip.GzipFile(fileobj=raw) if compressed else raw


def _refuse_compressed(start: bytes, name: str, error: type[CompNegError]) -> None:
    """Names the compression of data that is still compressed after :func:`_decompressed`."""
    if match := _COMPRESSED.match(start):
        if match.lastgroup == "gzip":
            raise error(f"{name}: compressed twice with gzip; unpack it once")
        raise error(f"{name}: compressed as {match.lastgroup}, which is not read; unpack it, or compress it with gzip")


def slug(text: str) -> str:
    """A name for files: letters, digits, dots and dashes.

    >>> slug("CPT + max pool, NRF (λ = 0.25)")
    'cpt-max-pool-nrf-λ-0.25'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-") or "unnamed"
