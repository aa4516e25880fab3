"""Vectors of queries on disk, so that a second run encodes nothing."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from pyserini_compneg.support.vectors import checked

_SECONDS = 10.0
_PARAMETERS = 500
_logger = logging.getLogger(__name__)


class VectorCache:
    """Vectors by text, in a file that several processes may use at once.

    Where the file cannot be read or written, a warning says so once, and all texts are encoded.

    Args:
        path: The file. All its vectors are of one model with the same settings.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._usable = True

    def get(self, texts: Sequence[str]) -> dict[str, dict[str, float]]:
        """The vectors of the texts that are in the file."""
        vectors: dict[str, dict[str, float]] = {}
        try:
            if not self._usable or not self._path.exists() or not self._path.stat().st_size:
                return {}  # the file is empty while another process creates it
            with closing(self._connect()) as database:
                for start in range(0, len(texts), _PARAMETERS):
                    part = texts[start : start + _PARAMETERS]
                    marks = ", ".join("?" * len(part))
                    rows = database.execute(f"SELECT text, vector FROM vectors WHERE text IN ({marks})", part)
                    vectors.update((text, checked(json.loads(vector), text)) for text, vector in rows)
        except (sqlite3.Error, OSError, ValueError, TypeError, AttributeError, RecursionError) as cause:
            self._give_up(cause)
            return {}
        return vectors

    def put(self, vectors: Mapping[str, Mapping[str, float]]) -> None:
        """Stores vectors."""
        if not self._usable or not vectors:
            return
        rows = [(text, json.dumps(vector, ensure_ascii=False)) for text, vector in vectors.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector TEXT) WITHOUT ROWID"
                )
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as cause:
            self._give_up(cause)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_SECONDS)

    def _give_up(self, cause: Exception) -> None:
        self._usable = False
        _logger.warning(
            "%s: not used as a cache: %s; delete it, or name another place in COMPNEG_CACHE", self._path, cause
        )
