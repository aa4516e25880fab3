"""The place where an index is built: a hidden folder beside its own, which takes its name when all is done.

Whatever ends a build, the index that was there before stays as it was. A build that was committed to disk on the way
leaves its folder behind, to be gone on with; one process at a time may have it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pyserini_compneg.errors import OutputError
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.lucene import MANIFEST_NAME

_PLAN = "build.json"
_LOCK = "build.lock"
_logger = logging.getLogger(__name__)


@contextmanager
def build_folder(target: Path, plan: Mapping[str, Any], overwrite: bool, resume: bool) -> Iterator[Path]:
    """A folder for the new index; it becomes ``target`` on a clean exit.

    On an exception the folder goes, unless :func:`keep` was called: then it stays, for ``resume``.

    Args:
        target: The index's place, without symbolic links.
        plan: What is built, of what; to go on, it must be what it was. JSON.
        overwrite: Replace an index that is there already, and throw away an unfinished build.
        resume: Go on with an unfinished build, if there is one.

    Raises:
        OutputError: The place is taken or cannot be written, another process builds there, or there is an unfinished
            build that nothing was said about, or one of another plan.
    """
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)  # a build was killed in the middle of an exchange
    _check_target(target, overwrite)
    folder = _folder(target)
    with _locked(target, folder):
        try:
            _prepare(target, folder, plan, overwrite, resume)
        except OutputError:
            raise
        except OSError as cause:
            raise _unwritable(target, cause) from None
        try:
            yield folder
            _check_target(target, overwrite)  # another build may have been faster
            _take_place(folder, target, old)
            (target / _PLAN).unlink(missing_ok=True)
        except BaseException:
            if (folder / _PLAN).exists():
                _logger.warning("%s: the unfinished build is kept; go on with it with --resume", target)
            else:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def unfinished_plan(target: str | Path) -> Mapping[str, Any] | None:
    """The plan of an unfinished build of an index, if there is one."""
    try:
        plan: Mapping[str, Any] = json.loads((_folder(Path(os.path.realpath(target))) / _PLAN).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return plan


def keep(folder: Path, plan: Mapping[str, Any]) -> None:
    """Marks a folder, whose content is committed, as an unfinished build to be gone on with.

    Args:
        folder: What :func:`build_folder` gave.
        plan: What it was given.
    """
    if not (folder / _PLAN).exists():
        with atomic_writer(folder / _PLAN) as handle:
            json.dump(plan, handle)


def _folder(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _prepare(target: Path, folder: Path, plan: Mapping[str, Any], overwrite: bool, resume: bool) -> None:
    """Keeps an unfinished build that is to be gone on with, and throws away any other."""
    before = unfinished_plan(target)
    if before is not None:
        if resume:
            _compare(target, before, json.loads(json.dumps(plan)))
            return
        if not overwrite:
            raise OutputError(
                f"{target}: an unfinished build of it is there; give --resume to go on with it, or --overwrite to "
                "throw it away"
            )
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def _compare(target: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise OutputError(
            f"{target}: cannot go on with the unfinished build, because {', '.join(changed)} changed since; give "
            "--overwrite without --resume to start anew"
        )


@contextmanager
def _locked(target: Path, folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise OutputError(f"{target}: another process is building it; wait for it, or give another --index") from None
    except OSError as cause:
        raise _unwritable(target, cause) from None
    try:
        yield
    finally:
        for place in (folder, target):
            (place / _LOCK).unlink(missing_ok=True)
        lock.release()


def _unwritable(target: Path, cause: OSError) -> OutputError:
    return OutputError(f"{target}: cannot be written: {(cause.strerror or str(cause)).lower()}")


def _check_target(target: Path, overwrite: bool) -> None:
    """Makes sure that nothing but an index is ever replaced."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir() or not ((target / MANIFEST_NAME).exists() or any(target.glob("segments_*"))):
        raise OutputError(f"{target}: exists and is no index; give another --index")
    if not overwrite:
        raise OutputError(f"{target}: exists already; give --overwrite to replace it, or another --index")


def _take_place(folder: Path, target: Path, old: Path) -> None:
    """Renames the folder to the target, whose old content goes once the new one is in place."""
    if not target.exists():
        folder.rename(target)
        return
    if _exchange(folder, target):
        shutil.rmtree(folder, ignore_errors=True)
        return
    target.rename(old)
    try:
        folder.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swaps two folders in one step, so that at no moment either name is free; False where the system cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and renameat2(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0
