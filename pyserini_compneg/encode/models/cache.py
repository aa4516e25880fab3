"""The cache folder, and hashes of models' files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyserini_compneg.files import atomic_writer


def cache_home() -> Path:
    """``$COMPNEG_CACHE``, or ``pyserini_compneg`` in the user's cache folder."""
    if place := os.environ.get("COMPNEG_CACHE"):
        return Path(place)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyserini_compneg"


def content_hash(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """A hash of files' contents and of settings, 16 hexadecimal digits.

    The hash of a file is remembered by its path, size and times, because hashing a large model takes seconds.

    Args:
        files: In a fixed order; their names count, their folders do not.
        settings: Other values that the hash depends on, in JSON.
    """
    memory = _Memory(cache_home() / "hashes.json")
    total = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file in files:
        total.update(f"{file.name}:{memory.hash_of(file)}".encode())
    memory.save()
    return total.hexdigest()[:16]


class _Memory:
    """The remembered hashes of files. Where they are missing or damaged, files are hashed again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = False
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            known = {}
        self._known: dict[str, str] = known if isinstance(known, dict) else {}

    def hash_of(self, file: Path) -> str:
        status = file.stat()
        key = f"{file.resolve()}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
        if not isinstance(self._known.get(key), str):
            with file.open("rb") as data:
                self._known[key] = hashlib.file_digest(data, "sha256").hexdigest()
            self._changed = True
        return self._known[key]

    def save(self) -> None:
        if not self._changed:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(self._path) as handle:
                json.dump(self._known, handle)
        except OSError:
            pass  # a cache folder that cannot be written only costs time
