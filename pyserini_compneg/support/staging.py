"""Writes files and folders atomically: a kill, a full disk or a second writer never leaves a broken result.

A result is written under a hidden name beside its final place, and renamed when it is complete. An existing result
stays until then. During long work, a lock beside the result keeps other processes away.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO, cast

from pyserini_compneg.support.errors import ArgumentError, BusyError, CompNegError, OutputError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.terminal import EscapedOutput

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""The errors of a file that cannot grow. Their messages do not name the file."""

lock_seconds: ContextVar[float] = ContextVar("lock_seconds", default=0.0)
"""How long a process waits for another writer of the same result. On a cluster, the other writer may be the first
process of the same part, which was considered lost and is about to end."""

_REMEDY = "choose another place with --output"
_TEMPORARY = re.compile(r"[0-9a-f]{8}\.tmp")
_logger = logging.getLogger(__name__)


@contextmanager
def output_errors(path: object, remedy: str = "", kinds: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    """Turns errors of the operating system into ``path: cannot be written: reason; remedy``."""
    try:
        yield
    except CompNegError:
        raise
    except kinds as cause:
        if isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG:
            raise ArgumentError(reason_of(cause), where=path) from None
        raise OutputError(f"cannot be written: {reason_of(cause)}", where=path, remedy=remedy) from None


@contextmanager
def index_disk_errors(index: object) -> Iterator[None]:
    """Turns errors of a full disk, whose messages name no file, into ``index: the index cannot be written: reason``."""
    try:
        yield
    except OSError as cause:
        if cause.errno in DISK_FULL and cause.filename is None:
            raise OutputError(f"the index cannot be written: {reason_of(cause)}", where=index) from None
        raise


@contextmanager
def atomic_writer(path: str | Path | None, remedy: str = _REMEDY, *, colours: bool = False) -> Iterator[TextIO]:
    """A text handle for a file that is written atomically.

    The text goes to a temporary file in the same folder. Missing folders are created. Both happen on entry, so an
    unwritable place is found before the work starts. On a clean exit the file gets its final name; on any exception it
    is removed. A device or a pipe, such as ``/dev/null``, is written directly, and so is standard output (``None`` or
    ``-``). On a terminal, control characters are escaped, unless the text has ``colours``.
    """
    if path is None or str(path) == "-":
        with _standard_output():
            escapes = sys.stdout.isatty() and not colours
            yield cast("TextIO", EscapedOutput(sys.stdout)) if escapes else sys.stdout
        return
    if os.path.isdir(path):
        raise OutputError("cannot be written: it is a folder", where=path, remedy="name a file in it")
    is_device = os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)
    try:
        with ExitStack() as stack:
            with output_errors(path, remedy):
                file = open(path, "w", encoding="utf-8", newline="\n") if is_device else _staged_file(path)  # noqa: SIM115
                handle = stack.enter_context(file)
            yield handle
    except OSError as cause:
        if cause.errno in DISK_FULL:
            raise OutputError(f"cannot be written: {reason_of(cause)}", where=path, remedy=remedy) from None
        raise


@contextmanager
def _staged_file(path: str | Path) -> Iterator[TextIO]:
    target = Path(os.path.realpath(path))
    with parent_folders(target):
        handle = _temporary_file(target)
        written = Path(handle.name)
        try:
            with handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
                if fcntl is not None:  # while it is locked, or another writer takes it for one that was left
                    os.replace(written, target)
            if fcntl is None:  # Windows renames no open file
                os.replace(written, target)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def _temporary_file(target: Path) -> TextIO:
    """A new hidden file beside the target, locked while it is open."""
    remove_left(target)
    while True:
        path = _temporary_name(target)
        handle = open(path, "x", encoding="utf-8", newline="\n")  # noqa: SIM115
        try:
            _lock(handle.fileno())
        except BlockingIOError:  # another process is about to remove it
            handle.close()
            continue
        except OSError:  # some network file systems have no locks; there, left files stay
            pass
        if path.exists():  # no other process removed it before it was locked
            return handle
        handle.close()


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """A new hidden folder beside the target, locked until it is deleted at the end."""
    remove_left(target)
    with ExitStack() as stack:
        while True:
            path = _temporary_name(target)
            path.mkdir(0o700)
            with suppress(OSError):
                stack.enter_context(_locked_entry(path))
            if path.exists():
                break
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        yield path


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")


def remove_left(target: Path) -> None:
    """Removes temporary files and folders of killed writers of a result. Files of living processes stay."""
    prefix = f".{target.name[:200]}."
    with suppress(OSError):  # the folder may be writable but not readable
        for path in target.parent.iterdir():
            if path.name.startswith(prefix) and _TEMPORARY.fullmatch(path.name[len(prefix) :]):
                with suppress(OSError), _locked_entry(path):
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink()


@contextmanager
def _locked_entry(path: Path) -> Iterator[None]:
    """Locks a file or a folder in this context. Raises OSError if another process has locked it."""
    number = os.open(path, os.O_RDONLY)
    try:
        _lock(number)
        yield
    finally:
        os.close(number)


def _lock(number: int) -> None:
    """Locks an open file or folder until it is closed or its process ends. Raises OSError if it is locked."""
    if fcntl is None:
        raise OSError(errno.ENOLCK, "no locks")
    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
    """The reason why standard output cannot be written."""
    return f"standard output: {'it is closed' if error.errno == errno.EBADF else reason_of(error)}"


def keep_inputs(output: str | Path | None, *inputs: str | Path, remedy: str = _REMEDY) -> None:
    """Refuses an output that is one of the inputs, or inside an input folder."""
    if output is None or str(output) == "-":
        return
    for source in inputs:
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(source)):
            raise OutputError(f"would overwrite {source}", where=output, remedy=remedy)


@contextmanager
def parent_folders(target: Path) -> Iterator[None]:
    """Creates the folders above a result. On an exception, removes created folders that are still empty."""
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        if not (above := next(folder for folder in target.parents if folder.exists())).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{above} is not a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


def lock_file(target: Path) -> Path:
    """The lock of a result. It is a file beside the result, because the result itself is renamed and deleted."""
    return target.with_name(f".{target.name}.lock")


@contextmanager
def locked(target: Path, busy: str, remedy: str = "wait for it", *, waits: bool = False) -> Iterator[None]:
    """Keeps other processes away from a result. If it is locked, waits, or refuses after ``lock_seconds``."""
    from filelock import FileLock, Timeout  # takes 20 ms, and only writers lock

    path = lock_file(target)
    lock, seconds = FileLock(path), lock_seconds.get()
    try:
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            if path.exists():
                raise
            try:
                path.touch()  # then it was just released
            except FileNotFoundError:  # in /proc, where files cannot be created, FileLock waits, too
                raise OSError(errno.EACCES, f"{target.parent} takes no files") from None
            lock.acquire(timeout=seconds)
    except Timeout:
        if not waits:
            raise BusyError(busy, where=target, remedy=remedy) from None
        _logger.warning("%s: %s; waiting", target, busy)
        lock.acquire()
    try:
        yield
    finally:
        try:
            with suppress(OSError):  # delete before the release, so that a waiting process sees it is gone
                path.unlink()
        finally:  # also after an interruption
            lock.release()


@contextmanager
def staged_folder(target: Path, replace: bool = False) -> Iterator[Path]:
    """A new folder beside ``target``. On a clean exit it is renamed to ``target``; on an exception it is deleted.

    An existing folder is replaced only with ``replace``.
    """
    with _temporary_folder(target) as beside:
        folder = beside / "made"  # with normal permissions, unlike `beside`
        folder.mkdir()
        yield folder
        if replace:
            replace_folder(folder, target)
        else:
            os.rename(folder, target)


def replace_folder(folder: Path, target: Path) -> None:
    """Renames a folder to ``target``. The former folder is deleted when the new folder is in place."""
    if not target.exists():
        folder.rename(target)
        return
    if not _exchange(folder, target):
        old = former_folder(target)
        target.rename(old)
        try:
            folder.rename(target)
        except BaseException:
            old.rename(target)
            raise
        with suppress(OSError):
            old.rename(folder)  # so that under its own name, it is never removed in part
    shutil.rmtree(folder, ignore_errors=True)


def former_folder(target: Path) -> Path:
    """The place where :func:`replace_folder` puts the old folder if the system cannot exchange folders in one step."""
    return target.with_name(f".{target.name}.old")


def end_or_undo_exchange(target: Path, is_result: Callable[[Path], bool]) -> None:
    """Deletes the former folder that a killed :func:`replace_folder` has left, or makes it the target if there is none.

    ``is_result`` tells such a folder from any other folder of this name, which stays.
    """
    remove_left(target)  # of a kill during the deletion below
    former = former_folder(target)
    if not is_result(former):
        return
    if target.exists():
        shutil.rmtree(former.rename(_temporary_name(target)))
    else:
        former.rename(target)


def _exchange(a: Path, b: Path) -> bool:
    """Exchanges two folders in one step, so that both names always exist. False if the system lacks such a call."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and renameat2(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0
