"""Encoded queries: vectors that are looked up in a file that the user names, or in the cache."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock

from pyserini_compneg.lucene import analyze
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import EncodingError, InputError
from pyserini_compneg.support.files import iter_jsonl, source_name
from pyserini_compneg.support.json_objects import json_kind
from pyserini_compneg.support.vectors import checked

_TEXT_FIELDS = ("text", "contents", "query")
_LOCK_SECONDS = 10.0
_PARAMETERS = 500
_IN_MEMORY = 256
"""The vectors that a process keeps. Opening the file takes as long as a search of ten hits in a small index."""

_LINE = '{"text": an atom, "vector": {term: weight}}'
_logger = logging.getLogger(__name__)


class CachedQueryEncoder:
    """Looks up atoms in JSON Lines of ``{"text", "vector"}``. The key ``contents`` or ``query`` may replace ``text``.

    Args:
        path: The file, plain or gzip.
        language: The language of the texts of an index of BM25's terms, or of ``bm25+MODEL``; None for other indexes.

    Attributes:
        name: The model that made the vectors, if the file names it.

    Raises:
        InputError: The file is missing or has no atoms, or a line is not a JSON object.
        EncodingError: A line lacks a text or vector, a weight is bad, a text has two vectors, or there are two models.
    """

    def __init__(self, path: str | Path, language: str | None = None) -> None:
        self._path, self._language = source_name(path), language
        self._vectors: dict[str, dict[str, float]] = {}
        self.name: str | None = None
        for line, record in iter_jsonl(path):
            source = f"{self._path}:{line}"
            text = next((record[name] for name in _TEXT_FIELDS if isinstance(record.get(name), str)), None)
            if text is None or not isinstance(record.get("vector"), dict):
                raise EncodingError(f"expected {_LINE}", where=source)
            vector = checked(record["vector"], source)
            if self._vectors.setdefault(text.strip(), vector) != vector:
                raise EncodingError(f"{text!r} has another vector on an earlier line", where=source)
            if "encoder" in record:
                self._set_name(record["encoder"], source)
        if not self._vectors:
            raise InputError(f"no atoms; expected lines of {_LINE}", where=self._path)

    @property
    def terms(self) -> set[str]:
        return set().union(*self._vectors.values())

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text.

        Raises:
            EncodingError: The file does not contain a text.
        """
        texts = checked_list("texts", texts)
        missing = next((text for text in texts if text.strip() not in self._vectors), None)
        if missing is not None:
            raise EncodingError(f"{self._path} has no vector for {missing!r}", remedy="encode it and add a line")
        return [dict(self._vectors[text.strip()]) for text in texts]

    def words(self, texts: Sequence[str]) -> list[list[str] | None]:
        """The terms of BM25; None if there are none, or the index has no words."""
        return [own or None for own in analyze(texts, self._language)] if self._language else [None] * len(texts)

    def _set_name(self, name: object, source: str) -> None:
        if not isinstance(name, str):
            raise EncodingError(f"the `encoder` must be a text, got {json_kind(name)}", where=source)
        if self.name not in (None, name):
            raise EncodingError(f"the vector is of {name!r}, those before it are of {self.name!r}", where=source)
        self.name = name


class VectorCache:
    """A cache of vectors by text, in a file that several processes may use at once, and the last ones in memory.

    If the file cannot be read or written, one warning is logged, and texts are encoded that are not in memory. Several
    threads may use it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._usable = True
        self._recent: dict[str, Mapping[str, float]] = {}
        self._lock = Lock()

    def get(self, texts: Sequence[str]) -> dict[str, dict[str, float]]:
        with self._lock:
            recent = {text: dict(self._recent[text]) for text in texts if text in self._recent}
        stored = self._stored([text for text in texts if text not in recent])
        self._keep(stored)
        return recent | stored

    def _keep(self, vectors: Mapping[str, Mapping[str, float]]) -> None:
        with self._lock:
            for text, vector in vectors.items():
                self._recent[text] = dict(vector)
            if len(self._recent) > _IN_MEMORY:
                for text in list(self._recent)[:-_IN_MEMORY]:
                    del self._recent[text]

    def _stored(self, texts: Sequence[str]) -> dict[str, dict[str, float]]:
        vectors: dict[str, dict[str, float]] = {}
        if not texts:
            return vectors
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
        self._keep(vectors)
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
        return sqlite3.connect(self._path, timeout=_LOCK_SECONDS)

    def _give_up(self, cause: Exception) -> None:
        self._usable = False
        _logger.warning(
            "%s: not used as a cache: %s; delete it, or name another place in COMPNEG_CACHE", self._path, cause
        )
