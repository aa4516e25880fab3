"""The shards of an index. The folder with ``compneg-shards.json`` is an index like any other.

    {"format_version": 1, "documents": 34,
     "shards": [{"path": "shard-00000-of-00002", "documents": 17, "checksum": "…"}, …]}

A path is relative to the folder, or absolute. Each shard is an index of this package, complete in itself.
"""

from __future__ import annotations

import os
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from pyserini_compneg.lucene.gate import java_class, java_errors
from pyserini_compneg.lucene.manifest import FORMAT_VERSION, MANIFEST_NAME, SHARDS_NAME, Manifest, commits, write_json
from pyserini_compneg.lucene.reader import ImpactReader
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError
from pyserini_compneg.support.files import content_digest, reason_of
from pyserini_compneg.support.schema import decoded, entry, read_schema

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
Question: TypeAlias = Callable[Concatenate[ImpactReader, Asked], Answer]
"""What a shard is asked: a function of a module, or a method, whose first argument is the reader of the shard."""

_REMEDY = "build the index again"


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A shard in the list: its folder (relative or absolute), number of documents, and :func:`shard_checksum`."""

    path: str = entry(lambda path: path.isprintable() and bool(path))
    documents: int = entry(lambda count: count >= 0)
    checksum: str = entry(bool)


@dataclass(frozen=True, slots=True)
class _ShardList:
    """The content of ``compneg-shards.json``."""

    documents: int
    shards: tuple[Mapping[str, Any], ...] = entry(bool)
    format_version: int = FORMAT_VERSION


class Shard:
    """A shard in this process. A subclass may open it elsewhere; it must have ``folder``, ``ask`` and ``close``."""

    def __init__(self, folder: Path, entry: ShardEntry) -> None:
        self.folder = folder
        try:
            self.reader = ImpactReader(folder, shard_commit(folder, entry).name)
        except IndexFormatError as error:
            raise error.recast(IndexReadError) from None
        if self.reader.manifest is None or self.reader.document_count != entry.documents:
            self.reader.close()
            said = f"the shard has not the {entry.documents} documents of {SHARDS_NAME}"
            raise IndexReadError(said, where=folder, remedy=_REMEDY)

    def ask(self, question: Question[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Callable[[], Answer]:
        """Starts a request. Returns a function that waits for the answer. Both may raise IndexReadError."""
        return partial(question, self.reader, *args, **kwargs)

    def close(self) -> None:
        """Closes the shard; may be called twice."""
        self.reader.close()


def shard_name(number: int, count: int) -> str:
    """The name that a build gives to the folder of a shard.

    >>> shard_name(2, 7)
    'shard-00002-of-00007'
    """
    return f"shard-{number:05d}-of-{count:05d}"


def shard_checksum(folder: Path, commit: Path | None = None) -> str:
    """A checksum of an index, computed from its manifest and a commit; None for its last commit.

    Lucene's commit names each file of the index with a unique id, and each file has its own checksum, which ``index
    --verify`` reads. So this checksum is quick to compute and unique to the index.
    """
    try:
        return content_digest(folder / MANIFEST_NAME, *([commit] if commit else commits(folder)[:1]))
    except OSError as cause:
        raise IndexReadError(f"the shard cannot be read: {reason_of(cause)}", where=folder) from None


def shards_id(entries: Sequence[ShardEntry]) -> str:
    """Identifies the content of an index in shards."""
    return content_digest("".join(entry.checksum for entry in entries))


def commit_files(commit: Path) -> tuple[str, list[str]]:
    """The id that Lucene gave to the commit of a segments file, and the names of the commit's files.

    Java answers in one text: see :func:`java_errors` for why no method of its collections is called.
    """
    java, path = java_class("io.compneg.index.Commits"), os.path.abspath(commit)
    with java_errors(IndexReadError, "cannot be read", commit):
        found = java.describe(path)
    named, *files = str(found).split("\n")
    return named, files


def write_shards(index: Path, entries: Sequence[ShardEntry]) -> None:
    """Writes the list of shards into the folder of the whole index."""
    documents = sum(entry.documents for entry in entries)
    shards = [asdict(entry) for entry in entries]
    write_json(index / SHARDS_NAME, {"format_version": FORMAT_VERSION, "documents": documents, "shards": shards})


def read_shards(index: Path) -> list[ShardEntry]:
    """Reads the list of shards. Refuses a list that names a shard twice or lacks shards."""
    path = index / SHARDS_NAME
    try:
        listed = read_schema(_ShardList, path, FORMAT_VERSION, IndexReadError, _REMEDY)
    except FileNotFoundError as cause:
        raise IndexReadError(f"cannot be read: {reason_of(cause)}", where=path, remedy=_REMEDY) from None
    entries = [
        decoded(ShardEntry, values, f"{path}: shard {number}", IndexReadError, _REMEDY)
        for number, values in enumerate(listed.shards)
    ]
    for what in ("path", "checksum"):
        named = [getattr(entry, what) for entry in entries]
        if twice := next((one for one, times in Counter(named).items() if times > 1), None):
            said = f"names the shard of {what} {twice!r} twice"
            raise IndexReadError(said, where=path, remedy="keep one of them")
    if (counted := sum(entry.documents for entry in entries)) != listed.documents:
        said = f"its shards have {counted} documents, and the index {listed.documents}; a shard is missing"
        raise IndexReadError(said, where=path, remedy=_REMEDY)
    return entries


def shard_commit(folder: Path, entry: ShardEntry) -> Path:
    """The segments file of the listed commit of a shard. Refuses an index that is not the listed shard."""
    for commit in commits(folder):
        if shard_checksum(folder, commit) == entry.checksum:
            return commit
    shard_checksum(folder)  # raises if there is no index
    said = f"the shard is not the one that {SHARDS_NAME} names"
    raise IndexReadError(said, where=folder, remedy=_REMEDY)


def checked_shard(folder: Path, entry: ShardEntry) -> Manifest:
    """The manifest of a listed shard, with the number of documents in the list."""
    shard_commit(folder, entry)
    manifest = Manifest.read(folder)
    if manifest is None:
        raise IndexReadError(f"the shard has no {MANIFEST_NAME}", where=folder, remedy=_REMEDY)
    return replace(manifest, documents=entry.documents, empty_documents=min(manifest.empty_documents, entry.documents))


def whole_manifest(index: Path, manifests: Mapping[str, Manifest]) -> Manifest:
    """The manifest of the whole index, made from the manifests of its shards. They may differ only in their counts."""
    (path, first), *others = manifests.items()
    for other, manifest in others:
        ours, theirs = (one.to_json() | {"documents": 0, "empty_documents": 0} for one in (first, manifest))
        if changed := [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]:
            got = " and ".join(reprlib.repr(one.get(changed[0])) for one in (ours, theirs))
            said = f"its shards {path} and {other} differ in {changed[0]}: {got}"
            raise IndexReadError(said, where=index, remedy=_REMEDY)
    return replace(
        first,
        documents=sum(manifest.documents for manifest in manifests.values()),
        empty_documents=sum(manifest.empty_documents for manifest in manifests.values()),
    )


def common_content(places: Sequence[str | Path], fields: Sequence[str] = ()) -> tuple[str | None, set[str]]:
    """The first id that two documents share, in any shards, and the filter fields that at least one document has.

    A shard is given by its folder, or by the segments file of its commit.
    """
    paths = "\n".join(map(os.path.abspath, places)).encode()
    union = java_class("io.compneg.update.ShardUnion")
    with java_errors(IndexReadError, "the shards cannot be read together"):
        java = union(paths)
        try:
            return java.duplicateId(), {field for field in fields if java.documentsWith(field)}
        finally:
            java.close()
