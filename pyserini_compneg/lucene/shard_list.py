"""``compneg-shards.json``: the shards of an index. The folder with this file is an index like any other.

    {"format_version": 1, "documents": 34,
     "shards": [{"path": "shard-00000-of-00002", "documents": 17, "checksum": "…"}, …]}

A path is relative to the folder, or absolute. Each shard is an index of this package, complete in itself.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.manifest import FORMAT_VERSION, MANIFEST_NAME, SHARDS_NAME, Manifest
from pyserini_compneg.support.errors import IndexReadError
from pyserini_compneg.support.files import atomic_writer, reason_of
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.terminal import shown

_REMEDY = "build the index again"


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A shard.

    Attributes:
        path: Its folder, relative to that of the whole index, or absolute.
        documents: How many documents it has.
        checksum: See :func:`shard_checksum`.
    """

    path: str
    documents: int
    checksum: str


def shard_name(number: int, count: int) -> str:
    """The folder of a shard, as a build calls it.

    >>> shard_name(2, 7)
    'shard-00002-of-00007'
    """
    return f"shard-{number:05d}-of-{count:05d}"


def shard_checksum(folder: Path) -> str:
    """A checksum by which an index is known: that of its manifest and of its commit.

    Lucene's commit names each file of the index with an id that no other index has, and each file has a checksum of its
    own, which ``index --verify`` reads. So this one is quick, and no other index has it.

    Raises:
        IndexReadError: The folder cannot be read, or holds no index.
    """
    try:
        files = [folder / MANIFEST_NAME, *sorted(folder.glob("segments_*"))]
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    except OSError as cause:
        raise IndexReadError(f"{folder}: the shard cannot be read: {reason_of(cause)}") from None
    return digest.hexdigest()


def write_shards(index: Path, entries: Sequence[ShardEntry]) -> None:
    """Writes the list into the folder of the whole index."""
    documents = sum(entry.documents for entry in entries)
    values = {"format_version": FORMAT_VERSION, "documents": documents, "shards": [asdict(entry) for entry in entries]}
    with atomic_writer(index / SHARDS_NAME, "make room, or give another folder") as handle:
        handle.write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def read_shards(index: Path) -> list[ShardEntry]:
    """Reads the list.

    Raises:
        IndexReadError: It cannot be read, is of a later version, names no shard, one twice, or not all of them.
    """
    path = index / SHARDS_NAME
    try:
        values = parse_json_object(path.read_text(encoding="utf-8"), str(path), IndexReadError)
    except (OSError, UnicodeDecodeError) as cause:
        raise IndexReadError(f"{path}: cannot be read: {reason_of(cause)}; {_REMEDY}") from None
    version = values.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise IndexReadError(f"{path}: format version {version!r}, but this release reads {FORMAT_VERSION}")
    shards = values.get("shards")
    if values.keys() != {"format_version", "documents", "shards"} or not isinstance(shards, list) or not shards:
        raise IndexReadError(f"{path}: expected `documents` and a list of `shards`, and nothing else; {_REMEDY}")
    entries = [_entry(path, number, values) for number, values in enumerate(shards)]
    for what in ("path", "checksum"):
        named = [getattr(entry, what) for entry in entries]
        if twice := next((one for one, times in Counter(named).items() if times > 1), None):
            raise IndexReadError(f"{path}: names the shard of {what} {twice!r} twice; keep one of them")
    if (listed := sum(entry.documents for entry in entries)) != values["documents"]:
        said = f"its shards have {listed} documents, and the index {shown(values['documents'])}; a shard is missing"
        raise IndexReadError(f"{path}: {said}; {_REMEDY}")
    return entries


def _entry(path: Path, number: int, values: Any) -> ShardEntry:
    good = isinstance(values, Mapping) and {name: type(value) for name, value in values.items()} == {
        "path": str,
        "documents": int,
        "checksum": str,
    }
    if not good or not values["path"].isprintable() or not values["path"] or values["documents"] < 1:
        raise IndexReadError(f"{path}: shard {number} needs a printable path, documents and a checksum; {_REMEDY}")
    return ShardEntry(**values)


def checked_shard(folder: Path, entry: ShardEntry) -> Manifest:
    """The manifest of a shard that is the one that the list names.

    Args:
        folder: Its folder.
        entry: What the list says.

    Raises:
        IndexReadError: It cannot be read, or is another one.
    """
    if shard_checksum(folder) != entry.checksum:
        raise IndexReadError(f"{folder}: the shard is not the one that {SHARDS_NAME} names; {_REMEDY}")
    manifest = Manifest.read(folder)
    if manifest is None or manifest.documents != entry.documents:
        raise IndexReadError(f"{folder}: the shard has not the {entry.documents} documents of {SHARDS_NAME}; {_REMEDY}")
    return manifest


def whole_manifest(index: Path, manifests: Mapping[str, Manifest]) -> Manifest:
    """The manifest of the index that shards make together.

    Args:
        index: Its folder.
        manifests: Those of the shards, by their paths.

    Raises:
        IndexReadError: Shards that differ in their encoder, its settings or their scale.
    """
    (path, first), *others = manifests.items()
    for other, manifest in others:
        ours, theirs = (one.to_json() | {"documents": 0, "empty_documents": 0} for one in (first, manifest))
        if changed := [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]:
            got = f"{ours.get(changed[0])!r} and {theirs.get(changed[0])!r}"
            raise IndexReadError(f"{index}: its shards {path} and {other} differ in {changed[0]}: {got}; {_REMEDY}")
    return replace(
        first,
        documents=sum(manifest.documents for manifest in manifests.values()),
        empty_documents=sum(manifest.empty_documents for manifest in manifests.values()),
    )
