"""The files of an index that a copy of it has, with their checksums."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pyserini_compneg.index.index_folder import COPIED, is_copied, is_shard
from pyserini_compneg.lucene import SHARDS_NAME
from pyserini_compneg.lucene.manifest import commits
from pyserini_compneg.lucene.shards import commit_files, read_shards, shard_commit, shards_id
from pyserini_compneg.support.errors import IndexFormatError
from pyserini_compneg.support.schema import entry
from pyserini_compneg.support.terminal import shown

_FOOTER = b"\xc0\x28\x93\xe8\0\0\0\0"
"""How the last 16 bytes of Lucene's files begin. Their other half is the CRC-32 of all bytes but that half."""

_CHECKSUM = re.compile("[0-9a-f]{8}")
_LONGEST_PATH = 200
BLOCK_BYTES = 1 << 18
"""How much of a file is read at once."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of an index: its path in the folder, its length, and the CRC-32 of :func:`checksum`."""

    path: str = entry(lambda path: is_copied(path) and len(path) < _LONGEST_PATH)
    bytes: int = entry(lambda count: count >= 0)
    checksum: str = entry(lambda digits: _CHECKSUM.fullmatch(digits) is not None)


def index_paths(index: Path, content_id: str) -> list[str] | None:
    """The paths of the files of an open index. None if the folder holds another commit by now."""
    if not (index / SHARDS_NAME).is_file():
        return next((paths for named, paths in map(_of_commit, commits(index)) if named == content_id), None)
    entries = read_shards(index)
    if outside := next((one.path for one in entries if not is_shard(one.path)), None):
        said = f"its shard {shown(outside)} is in another place, so the index cannot be copied"
        raise IndexFormatError(said, where=index, remedy=f"move it, and name it so in {SHARDS_NAME}")
    paths = [f"{one.path}/{path}" for one in entries for path in _of_commit(shard_commit(index / one.path, one))[1]]
    is_open = shards_id(entries) == content_id and read_shards(index) == entries
    return [*paths, *_present(index, COPIED), SHARDS_NAME] if is_open else None


def _of_commit(commit: Path) -> tuple[str, list[str]]:
    """The id of a commit, and its files with those that this package has beside them."""
    named, paths = commit_files(commit)
    return named, [*paths, *_present(commit.parent, COPIED)]


def _present(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if (folder / name).is_file()]


def index_files(index: Path, content_id: str) -> list[IndexFile] | None:
    """The files of an open index with their checksums. None if the folder holds another commit by now."""
    paths = index_paths(index, content_id)
    return (
        None
        if paths is None
        else [IndexFile(path, (index / path).stat().st_size, checksum(index / path)) for path in paths]
    )


def checksum(path: Path, reads_all: bool = False) -> str:
    """The CRC-32 of a file: the one in the footer of a file of Lucene, which is quick to read, or that of its bytes.

    With ``reads_all``, it is always computed. It is empty for a file whose footer has another one.
    """
    with path.open("rb") as data:
        size = os.fstat(data.fileno()).st_size
        footer = _footer(data, size)
        if footer is None:
            return f"{_crc32(data, size):08x}"
        computed = _crc32(data, size - 8) if reads_all else footer
    return f"{computed:08x}" if computed == footer else ""


def _footer(data: BinaryIO, size: int) -> int | None:
    if size < 16:
        return None
    data.seek(size - 16)
    magic, crc = data.read(8), data.read(8)
    data.seek(0)
    return int.from_bytes(crc) if magic == _FOOTER and not any(crc[:4]) else None


def _crc32(data: BinaryIO, size: int) -> int:
    total = 0
    while size > 0 and (block := data.read(min(size, BLOCK_BYTES))):
        total, size = zlib.crc32(block, total), size - len(block)
    return total
