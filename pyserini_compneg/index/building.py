"""The place where an index is built: a hidden folder beside its own, which takes its name when all is done.

Whatever ends a build, the index that was there before stays as it was. A build that was committed to disk on the way
leaves its folder behind, to be gone on with; one process at a time may have it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pyserini_compneg.errors import OutputError
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.lucene import MANIFEST_NAME, is_index

SKIPPED_LOG = "skipped-documents.txt"
"""In an index: a line for each document that was left out, with its place and the reason."""

_PLAN = "build.json"
_LUCENE = r"(pending_)?segments_[0-9a-z]+|_[0-9a-z]+(_[\w-]+)?\.\w+|write\.lock"
_PART = re.compile("|".join([_LUCENE, *map(re.escape, (MANIFEST_NAME, SKIPPED_LOG, _PLAN))]))
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
    check_target(target, overwrite)
    folder = _folder(target)
    with _parents(target), _locked(target):
        with _our_words(target):
            _mend(target)
            check_target(target, overwrite)  # another build may just have ended
            _prepare(target, folder, plan, overwrite, resume)
        try:
            yield folder
            check_target(target, overwrite)
            with _our_words(target):
                _take_place(folder, target)
        except BaseException:
            if (folder / _PLAN).exists():
                _logger.warning("%s: the unfinished build is kept; give --resume, too, to go on with it", target)
            else:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def check_target(target: Path, overwrite: bool) -> None:
    """Makes sure that nothing but an index is ever replaced, and that the name can be had.

    Args:
        target: The index's place, without symbolic links.
        overwrite: Whether an index that is there may be replaced.

    Raises:
        OutputError: It cannot be built there.
    """
    if os.path.ismount(target):
        raise OutputError(f"{target}: is a mount point, which no folder can replace; give a folder in it as --index")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_index(target):
        raise OutputError(f"{target}: exists and is no index; give another --index")
    if foreign := [path.name for path in target.iterdir() if not _PART.fullmatch(path.name) or not path.is_file()]:
        raise OutputError(
            f"{target}: holds {min(foreign)!r}, which is no part of an index; move it, or give another --index"
        )
    if not overwrite and unfinished_plan(target) is not None:
        raise OutputError(
            f"{target}: exists already, and so does an unfinished build of its successor; give --overwrite --resume to "
            "go on with that, or --overwrite to start anew"
        )
    if not overwrite:
        raise OutputError(f"{target}: exists already; give --overwrite to replace it, or another --index")


def unfinished_plan(target: str | Path) -> Mapping[str, Any] | None:
    """The plan of an unfinished build of an index, if there is one."""
    place = Path(os.path.realpath(target))
    try:
        plan = json.loads((_folder(place) / _PLAN).read_text("utf-8")) if place.name else None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return plan if isinstance(plan, dict) else None


def keep(folder: Path, plan: Mapping[str, Any]) -> None:
    """Marks a folder, whose content is committed, as an unfinished build to be gone on with.

    Args:
        folder: What :func:`build_folder` gave.
        plan: What it was given.
    """
    if not (folder / _PLAN).exists():
        with atomic_writer(folder / _PLAN, "make room, or give another --index") as handle:
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
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()


def _compare(target: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise OutputError(
            f"{target}: cannot go on with the unfinished build, because {', '.join(changed)} changed since; give "
            "--overwrite without --resume to start anew"
        )


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Makes the folders above the index, and on an exception removes those of them that hold nothing else."""
    made: list[Path] = []
    try:
        with _our_words(target):
            made += (folder for folder in target.parents if not folder.exists())
            if not (above := next(folder for folder in target.parents if folder.exists())).is_dir():
                raise OutputError(f"{target}: cannot be written: {above} is no folder; give another --index")
            target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Keeps other builds of the index away. The lock stands beside the folders, which are renamed and deleted."""
    path = target.with_name(f".{target.name}.lock")
    lock = FileLock(path, timeout=0)
    try:
        with _our_words(target):
            lock.acquire()
    except Timeout:
        raise OutputError(f"{target}: another process is building it; wait for it, or give another --index") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: who has it open will see that it is gone, and ask again
        lock.release()


@contextmanager
def _our_words(target: Path) -> Iterator[None]:
    """Says in one line what the system refuses."""
    try:
        yield
    except (OutputError, Timeout):
        raise
    except OSError as cause:
        raise OutputError(f"{target}: cannot be written: {(cause.strerror or str(cause)).lower()}") from None


def _take_place(folder: Path, target: Path) -> None:
    """Renames the folder to the target, whose old content goes once the new one is in place."""
    (folder / _PLAN).unlink(missing_ok=True)
    if not target.exists():
        folder.rename(target)
    elif _exchange(folder, target):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        target.rename(_old(target))
        try:
            folder.rename(target)
        except BaseException:
            _old(target).rename(target)
            raise
        shutil.rmtree(_old(target), ignore_errors=True)


def _mend(target: Path) -> None:
    """Undoes what a kill between the two renames of an exchange left."""
    if not is_index(_old(target)):
        return
    if target.exists():
        shutil.rmtree(_old(target))
    else:
        _old(target).rename(target)


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _exchange(a: Path, b: Path) -> bool:
    """Swaps two folders in one step, so that at no moment either name is free; False where the system cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and renameat2(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0
