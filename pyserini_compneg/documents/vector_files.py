"""Files of vectors: their names, the file that describes them, and how a file grows during encoding."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from pyserini_compneg.lucene import Manifest
from pyserini_compneg.support.errors import ArgumentError, InputError, OutputError
from pyserini_compneg.support.existing_work import (
    ExistingWork,
    continues,
    exists_already,
    read_record,
    say_kept,
    unfinished_work,
)
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.schema import misfit
from pyserini_compneg.support.staging import atomic_writer, locked, output_errors, parent_folders, remove_left
from pyserini_compneg.support.surrogates import utf8

VECTORS_FILE = "vectors.about"
"""The file beside the vectors that names their encoder, its settings and the impact scale."""

SHARD_NAME = re.compile(r"vectors-([0-9]{5})-of-([0-9]{5})\.jsonl\.(?:gz|xz)")

MOST_SHARDS = 10_000

_ABOUT_KEYS = {"encoder", "settings", "signed", "impact_scale"}
_LEVEL = 6
_GZIP = 31
"""The window bits by which zlib reads gzip."""
_MEMBERS_KEPT = 8
_REMEDY = "make room, or give another --output"


def shard_path(folder: str | Path, number: int = 0, count: int = 1) -> Path:
    """The file of a shard. Numbers start at 0."""
    return Path(folder) / f"vectors-{number:05d}-of-{count:05d}.jsonl.gz"


def check_number_of_shards(count: int) -> None:
    if not 1 <= count <= MOST_SHARDS:
        raise ArgumentError(f"the number of shards must be from 1 to {MOST_SHARDS:,}, got {count}")


def check_same_division(path: Path) -> None:
    """Refuses a folder that holds shards of another division."""
    ours = SHARD_NAME.fullmatch(path.name)
    for file in sorted(path.parent.glob("vectors-*")):
        theirs = SHARD_NAME.fullmatch(file.name)
        if ours and theirs and ours[2] != theirs[2]:
            raise OutputError(
                f"is not a shard of {int(ours[2])}", where=file, remedy="move it, or give another --output"
            )


@contextmanager
def shard_file(
    path: Path, plan: Mapping[str, Any], settings: ExistingWork, restarts: bool = False
) -> Iterator[ShardFile]:
    """Opens the file of a shard for writing. On a clean exit it takes its final name.

    On an exception, complete blocks are kept. Later work can continue them if ``plan`` is equal: the source and the
    settings of the vectors, in JSON. If it is not, ``restarts`` discards them.
    """
    with output_errors(path, _REMEDY), parent_folders(path), locked(path, "another process is writing it"):
        check_output(path, settings.may_overwrite)
        file = ShardFile(path, plan, settings.existing, restarts)
        try:
            yield file
            file.finish()
        except BaseException:
            file.interrupt()
            raise


class ShardFile:
    """A gzip file that grows block by block, opened by :func:`shard_file`.

    Each block is a separate gzip member, so the file can be cut back to the end of any block. A second file, the state,
    counts the complete blocks. Both files are hidden.
    """

    def __init__(self, path: Path, plan: Mapping[str, Any], existing: str, restarts: bool) -> None:
        self._path = path
        self._plan = plan
        self._partial, self._state = _partial_of(path), _state_of(path)
        self.position = (0, 1)
        self.documents = 0
        self._open(existing, restarts)

    def finish(self) -> None:
        self._data.close()
        os.replace(self._partial, self._path)
        self._state.unlink(missing_ok=True)

    def interrupt(self) -> None:
        with suppress(OSError):  # counted blocks are on disk; the buffer may hold a block that did not fit
            self._data.close()
        if self.documents and self._state.exists():
            say_kept(self._path)
        else:
            self._partial.unlink(missing_ok=True)
            self._state.unlink(missing_ok=True)

    def add(self, position: tuple[int, int], lines: Sequence[str]) -> None:
        """Writes the lines of a block to disk, then the position after the block."""
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=_LEVEL, mtime=0) as member:
            member.write(utf8("".join(f"{line}\n" for line in lines)))
        if lines:
            self._data.write(packed.getvalue())
            self._data.flush()
            os.fsync(self._data.fileno())
        self.documents += len(lines)
        self.position = position
        state = {"plan": self._plan, "bytes": self._data.tell(), "position": position, "documents": self.documents}
        with atomic_writer(self._state, _REMEDY) as handle:
            json.dump(state, handle)

    def _open(self, existing: str, restarts: bool) -> None:
        remove_left(self._state)
        state = self._unfinished()
        if not state or not continues(self._path, state["plan"], self._plan, existing, restarts=restarts):
            self._state.unlink(missing_ok=True)
            self._data: BinaryIO = self._partial.open("wb")
            return
        self._data = self._partial.open("r+b")
        self._data.truncate(state["bytes"])
        self._data.seek(state["bytes"])
        self.position, self.documents = tuple(state["position"]), state["documents"]

    def _unfinished(self) -> dict[str, Any] | None:
        """The state of unfinished work, if all its data exist. The plan of a damaged state is empty."""
        match state := read_record(self._state) if self._partial.exists() else None:
            case None:
                return None
            case {"plan": dict(), "bytes": int(size), "documents": int(count), "position": [int(file), int(line)]}:
                written = self._partial.stat().st_size
                return state if min(size, count, file) >= 0 and line >= 1 and written >= size else None
        return {"plan": {}}


class KnownVectors:
    """The vectors of a finished file, by the ids and texts of their documents, for an update of the file.

    In memory are the ids and hashes of the texts. The vectors stay in the file, which is open until :meth:`close`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._documents: dict[str, tuple[bytes, int, int]] = {}  # hash of the text, start of the gzip member, line
        self._given: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._lines = lru_cache(_MEMBERS_KEPT)(lambda start: self._member(start)[0])  # mostly, the order is the same
        try:
            self._file = path.open("rb")
        except FileNotFoundError:
            raise OutputError("there is no file to update", where=path, remedy="encode without --update") from None
        try:
            self._read()
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
            self._file.close()
            said = "is damaged, so it cannot be updated"
            raise InputError(said, where=path, remedy="encode all again with --overwrite") from None

    def close(self) -> None:
        self._file.close()

    def count(self, docid: str, text: str) -> None:
        """Counts a document of the collection as inserted, replaced or unchanged."""
        known = self._documents.get(docid)
        self._counts["inserted" if known is None else "unchanged" if known[0] == _digest(text) else "replaced"] += 1
        if known is not None:
            self._given.add(docid)

    @property
    def summary(self) -> str:
        """What has been counted, and how many documents of the file have not been."""
        done = ", ".join(f"{self._counts[name]} {name}" for name in ("inserted", "replaced", "unchanged"))
        deleted = len(self._documents) - len(self._given)
        return f"{done}, {deleted} deleted, {self._counts.total()} documents now"

    def find(self, docid: str, text: str) -> list[dict[str, float]] | None:
        """The vectors of a document with this text: its own, or one for each passage. None if there are none."""
        digest, start, line = self._documents.get(docid, (b"", 0, 0))
        if digest != _digest(text):
            return None
        return _vectors(json.loads(self._lines(start)[line]))

    def _read(self) -> None:
        start, size = 0, self._path.stat().st_size
        while start < size:
            lines, end = self._member(start)
            for number, line in enumerate(lines):
                record = json.loads(line)
                for vector in _vectors(record):
                    vector.items()
                self._documents[record["id"]] = _digest(_text(record)), start, number
            start = end

    def _member(self, start: int) -> tuple[list[bytes], int]:
        """The lines of a gzip member, and where the member ends."""
        self._file.seek(start)
        member, data = zlib.decompressobj(_GZIP), bytearray()
        while not member.eof:
            packed = self._file.read(io.DEFAULT_BUFFER_SIZE)
            if not packed:
                raise EOFError
            data += member.decompress(packed)
        return bytes(data).splitlines(), self._file.tell() - len(member.unused_data)


def _vectors(record: Mapping[str, Any]) -> list[dict[str, float]]:
    return [record["vector"]] if "vector" in record else list(record["vectors"])


def _text(record: Mapping[str, Any]) -> str:
    """The text that was encoded; beside vectors of passages, a title stands alone."""
    return str(record["contents"]) if "contents" in record else f"{record['title']}\n{record['text']}"


def _digest(text: str) -> bytes:
    return hashlib.blake2b(utf8(text), digest_size=16).digest()


def check_unfinished(path: Path) -> None:
    if _state_of(path).exists():
        raise unfinished_work(path)


def clear_unfinished(path: Path) -> None:
    _state_of(path).unlink(missing_ok=True)
    _partial_of(path).unlink(missing_ok=True)


def _partial_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _state_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.state")


def check_output(path: Path, overwrite: bool) -> None:
    """Refuses an existing output. Callers check this before they load a model."""
    if path.is_dir():
        raise OutputError("a folder", where=path, remedy="move it, or give another --output")
    if path.exists() and not overwrite:
        raise exists_already(path)


def read_about(path: Path) -> dict[str, Any]:
    """The content: ``encoder``, ``settings``, ``signed``, ``impact_scale``, and perhaps ``passages`` and ``concepts``.

    Empty without a file.
    """
    try:
        about = parse_json_object(path.read_text(encoding="utf-8"), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        about = {}
    concepts = about.get("concepts", [])
    fits = isinstance(concepts, list) and all(isinstance(name, str) for name in concepts)
    if not fits or set(about) - {"passages", "concepts"} != _ABOUT_KEYS or misfit(Manifest, about) is not None:
        raise InputError("damaged", where=path, remedy="delete it, and name --encoder and --impact-scale")
    return about
