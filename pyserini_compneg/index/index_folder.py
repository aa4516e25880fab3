"""The folder in which an index is built: hidden, beside the final folder, and renamed when the index is complete.

An existing index stays unchanged until the new index is complete. A build that was committed to disk leaves its folder
behind, so that a later build can continue it. Only one process at a time may build an index.
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

from pyserini_compneg.documents.passages import shown_passages
from pyserini_compneg.lucene import (
    INDEX_CONCEPTS,
    MANIFEST_NAME,
    QUERY_TOKENIZER,
    SHARDS_NAME,
    IndexSettings,
    Manifest,
    is_index,
)
from pyserini_compneg.support.errors import IndexReadError, OutputError
from pyserini_compneg.support.existing_work import START_ANEW, continues, exists_already, read_record, say_kept
from pyserini_compneg.support.staging import (
    atomic_writer,
    end_or_undo_exchange,
    index_disk_errors,
    lock_file,
    locked,
    output_errors,
    parent_folders,
    replace_folder,
)

SKIPPED_LOG = "skipped-documents.txt"
"""A file in the index with a line for each skipped document: its place and its fault."""

_PLAN = "build.json"
_PLAN_KEYS = {"encoder", "settings", "sources"}
_OF_COMMITS = r"segments_[0-9a-z]+|_[0-9a-z]+(_[\w-]+)?\.\w+"
_LUCENE_FILES = rf"{_OF_COMMITS}|pending_segments_[0-9a-z]+|write\.lock"
_ARTIFACT = "pt_meta.json"
"""PyTerrier recognises an index by this file."""

BLOCK_MAXIMA = "compneg.maxima"
"""The file that the Java companion writes for a reordered index."""

_MAXIMA_FILES = (BLOCK_MAXIMA, f"{BLOCK_MAXIMA}.tmp", f"{BLOCK_MAXIMA}.next")
_KEPT_OF_MODEL = (QUERY_TOKENIZER, INDEX_CONCEPTS)
COPY_RECORD = "compneg-copy.json"
"""The file of a copy that has the address of the index that it follows. It makes the folder the follower's alone."""

_OUR_FILES = (MANIFEST_NAME, SHARDS_NAME, SKIPPED_LOG, COPY_RECORD, *_MAXIMA_FILES, _PLAN, _ARTIFACT, *_KEPT_OF_MODEL)
_KILLED_UPDATE = rf"\.{re.escape(SHARDS_NAME)}\.[0-9a-f]{{8}}\.tmp"
_INDEX_FILES = re.compile("|".join([_LUCENE_FILES, _KILLED_UPDATE, *map(re.escape, _OUR_FILES)]))
_SHARD = re.compile(r"shard-\d{5}-of-\d{5}")
NEXT_MAXIMA = f"{BLOCK_MAXIMA}.next"
"""The block maxima of an update, which become :data:`BLOCK_MAXIMA` after its commit."""

COPIED = (NEXT_MAXIMA, BLOCK_MAXIMA, MANIFEST_NAME, SKIPPED_LOG, _ARTIFACT, *_KEPT_OF_MODEL)
"""The files beside Lucene's that a copy of an index has, in an order in which no renamed file is missed."""

_COPIED = re.compile(
    rf"(?:{_SHARD.pattern}/)?(?:{_OF_COMMITS}|{'|'.join(map(re.escape, COPIED))})|{re.escape(SHARDS_NAME)}"
)
_logger = logging.getLogger(__name__)


@contextmanager
def new_index_folder(target: Path, plan: Mapping[str, Any], settings: IndexSettings) -> Iterator[Path]:
    """A folder in which to build an index. On a clean exit it becomes ``target``, which has no symbolic links.

    On an exception the folder is deleted, unless :func:`keep_unfinished` was called. Then it stays, and a build with an
    equal plan can continue it. The plan describes in JSON what is built, and from which sources.
    """
    check_target(target, settings.may_overwrite)
    folder = _building(target)
    with index_disk_errors(target), ExitStack() as stack:
        with output_errors(target, "give another folder"):
            stack.enter_context(parent_folders(target))
            stack.enter_context(_building_alone(target))
            end_or_undo_exchange(target, is_index)
            check_target(target, settings.may_overwrite)  # another build may have finished meanwhile
            # A model is identified by its hash, so its folder may change.
            same = {"encoder"} if "model" in plan["settings"] else set[str]()
            replaces = settings.existing == "replace"
            if not continues(target, unfinished_plan(target), plan, settings.existing, restarts=replaces, same=same):
                _empty(folder)
        try:
            yield folder
            check_target(target, settings.may_overwrite)
            _warn_of_lost_settings(target, folder)
            with output_errors(target, "give another folder"):
                (folder / _PLAN).unlink(missing_ok=True)
                replace_folder(folder, target)
        except BaseException:
            if (folder / _PLAN).exists():
                say_kept(target)
            else:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def check_target(target: Path, may_overwrite: bool, url: str | None = None) -> None:
    """Checks that an index can be built at a path, and that the build replaces nothing but an index.

    With ``url`` the index is copied from there, and may replace nothing but such a copy.
    """
    if os.path.ismount(target):
        said, remedy = "is a mount point, which no folder can replace", "give a folder in it"
        raise OutputError(said, where=target, remedy=remedy)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_index(target) and not _has_manifest(target):
        raise OutputError("exists and is not an index", where=target, remedy="give another folder")
    if foreign := _foreign(target):
        said = f"holds {min(foreign)!r}, which is not part of an index"
        raise OutputError(said, where=target, remedy="move it, or give another folder")
    if url is None:
        refuse_copy(target)
    elif copied_from(target) != url:
        said = f"holds an index that is no copy of {url}"
        raise OutputError(said, where=target, remedy="give another path, or move it away")
    if not may_overwrite and unfinished_plan(target) is not None:
        said = "exists already, and there is an unfinished build to replace it"
        remedy = f"give --replace (existing='replace') to continue that build, or {START_ANEW}"
        raise OutputError(said, where=target, remedy=remedy)
    if not may_overwrite:
        raise exists_already(target)


def copied_from(folder: Path) -> str | None:
    """The address of the index that the folder is a copy of; None if it is no copy."""
    record = read_record(folder / COPY_RECORD)
    return None if record is None else str(record.get("url"))


def refuse_copy(folder: Path) -> None:
    """Refuses to change a copy: the server that follows would replace it again."""
    if url := copied_from(folder):
        remedy = f"change the index there, or delete {COPY_RECORD} in this folder if no server follows any more"
        raise OutputError(f"is a copy that follows {url}", where=folder, remedy=remedy)


def _foreign(folder: Path) -> list[str]:
    """The files in the folder of an index that do not belong to the index."""
    shards = [path for path in folder.glob("shard-*") if _SHARD.fullmatch(path.name) and path.is_dir()]
    shards = shards if (folder / SHARDS_NAME).is_file() else []
    others = set(folder.iterdir()).difference(shards)
    foreign = [path.name for path in others if not (_INDEX_FILES.fullmatch(path.name) and path.is_file())]
    return foreign + [f"{shard.name}/{name}" for shard in shards for name in _foreign(shard)]


def _warn_of_lost_settings(target: Path, folder: Path) -> None:
    """Warns if searches of the index that is replaced had a language, fields or passages that the new one has not."""
    try:
        old, new = Manifest.read(target), Manifest.read(folder)
    except IndexReadError:
        return
    if old is None or new is None:
        return
    fields = [name for name in old.filter_fields if name not in new.filter_fields]
    lost = [f"--language {old.language}"] if old.language != new.language else []
    lost += [f"--filter-fields {' '.join(fields)}"] if fields else []
    lost += [f"--passages {shown_passages(old.passages)}"] if old.passages and not new.passages else []
    if lost:
        _logger.warning(
            "%s: the index that it replaces was built with %s, and this one is not", target, ", ".join(lost)
        )


def is_copied(path: str) -> bool:
    """Whether a path in the folder of an index may be that of a file of the index, also of one in shards.

    >>> is_copied("shard-00000-of-00002/_0.cfs"), is_copied("../_0.cfs"), is_copied("write.lock")
    (True, False, False)
    """
    return _COPIED.fullmatch(path) is not None


def is_shard(path: str) -> bool:
    """Whether the path of a shard is that of a folder in the folder of the whole index, as a build names it."""
    return _SHARD.fullmatch(path) is not None


def _has_manifest(folder: Path) -> bool:
    """Whether a folder was an index of this package, even if the file by which Lucene recognises an index is lost."""
    try:
        return Manifest.read(folder) is not None
    except IndexReadError:
        return False


def unfinished_plan(index: str | Path) -> Mapping[str, Any] | None:
    """The plan of an unfinished build of an index. It is empty if it is damaged; None without such a build."""
    target = Path(os.path.realpath(index))
    plan = read_record(_building(target) / _PLAN) if target.name else None
    return plan if plan is None or plan.keys() >= _PLAN_KEYS else {}


def keep_unfinished(folder: Path, plan: Mapping[str, Any]) -> None:
    """Marks a folder of :func:`new_index_folder` as a build that can be continued. Its content must be committed."""
    if not (folder / _PLAN).exists():
        with atomic_writer(folder / _PLAN, "make room, or give another folder") as handle:
            json.dump(plan, handle)


def drop_unfinished(folder: Path) -> None:
    """Removes the mark: the build cannot be continued, and its folder is deleted at the end."""
    (folder / _PLAN).unlink(missing_ok=True)


def _building(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _building_alone(target: Path) -> AbstractContextManager[None]:
    return locked(target, "another process is building it", "wait for it, or give another folder")


def _empty(folder: Path) -> None:
    """Creates an empty folder for a build, and deletes an unfinished build."""
    if folder.exists():
        drop_unfinished(folder)  # first: nobody can continue what a kill leaves half removed
        shutil.rmtree(folder)
    folder.mkdir()


def clear_stale(target: Path) -> None:
    """Removes the remains of a killed build beside an index, if they cannot be continued and no process is building."""
    if unfinished_plan(target) is None and (_building(target).exists() or lock_file(target).exists()):
        with suppress(OSError), _building_alone(target):
            shutil.rmtree(_building(target), ignore_errors=True)
