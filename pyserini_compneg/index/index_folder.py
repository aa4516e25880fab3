"""The folder of an index that is being built: hidden, beside the index whose name it takes when all is done.

However a build ends, the index that was there before stays as it was. A build that was committed to disk on the way
leaves its folder behind, so that a later build can continue it. Only one process at a time may build an index.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene import MANIFEST_NAME, SHARDS_NAME, Manifest, is_index
from pyserini_compneg.support.errors import IndexReadError, OutputError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.staging import (
    DISK_FULL,
    atomic_writer,
    changed_settings,
    former_folder,
    lock_file,
    locked,
    output_errors,
    parent_folders,
    replace_folder,
    undo_half_an_exchange,
)

SKIPPED_LOG = "skipped-documents.txt"
"""A file in the index, with a line for each document that was left out: where it was, and why."""

_PLAN = "build.json"
_PLAN_KEYS = {"encoder", "settings", "sources"}
_LUCENE_FILES = r"(pending_)?segments_[0-9a-z]+|_[0-9a-z]+(_[\w-]+)?\.\w+|write\.lock"
_ARTIFACT = "pt_meta.json"
"""By this file PyTerrier knows what an index is."""

_BLOCK_MAXIMA = "compneg.maxima"
"""What the Java companion writes for a reordered index."""

_OUR_FILES = (MANIFEST_NAME, SHARDS_NAME, SKIPPED_LOG, _BLOCK_MAXIMA, _PLAN, _ARTIFACT)
_INDEX_FILES = re.compile("|".join([_LUCENE_FILES, *map(re.escape, _OUR_FILES)]))
_SHARD = re.compile(r"shard-\d{5}-of-\d{5}")
_logger = logging.getLogger(__name__)


@contextmanager
def new_index_folder(
    target: Path, plan: Mapping[str, Any], overwrite: bool, resume: bool, replace: bool = False
) -> Iterator[Path]:
    """A folder to build an index in; on a clean exit it becomes ``target``.

    On an exception the folder is deleted. If :func:`keep_unfinished` was called, it stays for ``resume`` instead.

    Args:
        target: The index to make, without symbolic links.
        plan: What is built, and from what, in JSON. A build can only be continued with an equal plan.
        overwrite: Replace an index that is there already, and throw away an unfinished build.
        resume: Continue an unfinished build, if there is one.
        replace: Both; throw an unfinished build away if it has another plan.

    Raises:
        OutputError: The target exists or cannot be written, another process builds it, there is an unfinished build
            and no option is set, or the unfinished build has another plan.
    """
    overwrite, resume = overwrite or replace, resume or replace
    check_target(target, overwrite)
    folder = _building(target)
    with ExitStack() as stack:
        with output_errors(target, "give another folder"):
            stack.enter_context(parent_folders(target))
            stack.enter_context(_building_alone(target))
            if is_index(former_folder(target)):
                undo_half_an_exchange(target)
            check_target(target, overwrite)  # another build may just have ended
            if not (resume and _can_be_continued(target, plan, replace)):
                _empty(target, folder, overwrite)
        try:
            yield folder
            check_target(target, overwrite)
            with output_errors(target, "give another folder"):
                (folder / _PLAN).unlink(missing_ok=True)
                replace_folder(folder, target)
        except BaseException as error:
            if (folder / _PLAN).exists():
                _logger.warning("%s: the unfinished build is kept; add resume=True to continue it", target)
            else:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.errno in DISK_FULL and error.filename is None:
                raise OutputError(f"the index cannot be written: {reason_of(error)}", where=target) from None
            raise


def check_target(target: Path, overwrite: bool) -> None:
    """Makes sure that an index can be built there, and that nothing but an index is ever replaced.

    Args:
        target: The index to make, without symbolic links.
        overwrite: Whether an index that is there may be replaced.

    Raises:
        OutputError: It cannot be built there.
    """
    if os.path.ismount(target):
        raise OutputError(f"{target}: is a mount point, which no folder can replace; give a folder in it")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_index(target) and not _has_manifest(target):
        raise OutputError(f"{target}: exists and is no index; give another folder")
    if foreign := _foreign(target):
        raise OutputError(
            f"{target}: holds {min(foreign)!r}, which is no part of an index; move it, or give another folder"
        )
    if not overwrite and unfinished_plan(target) is not None:
        raise OutputError(
            f"{target}: exists already, and there is an unfinished build to replace it; give replace=True to "
            "continue that build, or overwrite=True to start anew"
        )
    if not overwrite:
        raise OutputError(f"{target}: exists already; give overwrite=True to replace it, or another folder")


def _foreign(folder: Path) -> list[str]:
    """What is in the folder of an index and no part of it."""
    shards = [path for path in folder.glob("shard-*") if _SHARD.fullmatch(path.name) and path.is_dir()]
    shards = shards if (folder / SHARDS_NAME).is_file() else []
    others = set(folder.iterdir()).difference(shards)
    foreign = [path.name for path in others if not (_INDEX_FILES.fullmatch(path.name) and path.is_file())]
    return foreign + [f"{shard.name}/{name}" for shard in shards for name in _foreign(shard)]


def _has_manifest(folder: Path) -> bool:
    """Whether a folder was an index of ours; damage may have taken the file by which Lucene knows one."""
    try:
        return Manifest.read(folder) is not None
    except IndexReadError:
        return False


def unfinished_plan(index: str | Path) -> Mapping[str, Any] | None:
    """The plan of an unfinished build of an index; None if there is no such build."""
    target = Path(os.path.realpath(index))
    try:
        plan = json.loads((_building(target) / _PLAN).read_text("utf-8")) if target.name else None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return plan if isinstance(plan, dict) and plan.keys() >= _PLAN_KEYS else None


def keep_unfinished(folder: Path, plan: Mapping[str, Any]) -> None:
    """Marks a folder, whose content is committed, as an unfinished build that can be continued.

    Args:
        folder: What :func:`new_index_folder` gave.
        plan: The plan that it was given.
    """
    if not (folder / _PLAN).exists():
        with atomic_writer(folder / _PLAN, "make room, or give another folder") as handle:
            json.dump(plan, handle)


def drop_unfinished(folder: Path) -> None:
    """Takes the mark away again: the build cannot be continued, and its folder goes when it ends."""
    (folder / _PLAN).unlink(missing_ok=True)


def _building(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _building_alone(target: Path) -> AbstractContextManager[None]:
    return locked(target, "another process is building it", "wait for it, or give another folder")


def _can_be_continued(target: Path, plan: Mapping[str, Any], replace: bool) -> bool:
    """Whether there is an unfinished build with this plan. Another plan is an error, but not with ``replace``."""
    before, now = unfinished_plan(target), json.loads(json.dumps(plan))
    if before is None:
        return False
    # A model is known by its hash, wherever its folder is now.
    same_model = {"encoder"} if "model" in now["settings"] else set()
    changed = ", ".join(name for name in changed_settings(before, now) if name not in same_model)
    if changed and not replace:
        raise OutputError(
            f"{target}: the unfinished build cannot be continued, because {changed} changed since; give "
            "replace=True to start anew"
        )
    if changed:
        _logger.warning("%s: %s changed since the unfinished build, so it starts anew", target, changed)
    return not changed


def _empty(target: Path, folder: Path, overwrite: bool) -> None:
    """Makes a new folder to build in, and throws away what is there."""
    if unfinished_plan(target) is not None and not overwrite:
        raise OutputError(
            f"{target}: there is an unfinished build of it; give resume=True to continue it, or overwrite=True to "
            "throw it away"
        )
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()


def clear_stale(target: Path) -> None:
    """Removes what a killed build left beside an index, if nobody can continue it and no process still builds."""
    if unfinished_plan(target) is None and (_building(target).exists() or lock_file(target).exists()):
        with suppress(OSError), _building_alone(target):
            shutil.rmtree(_building(target), ignore_errors=True)
