"""Vectors of queries that were encoded elsewhere, looked up by their text. The model is not needed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import EncodingError, InputError
from pyserini_compneg.support.files import iter_jsonl, source_name
from pyserini_compneg.support.json_objects import json_kind
from pyserini_compneg.support.vectors import checked

_TEXT_FIELDS = ("text", "contents", "query")
_LINE = '{"text": an atom, "vector": {term: weight}}'


class CachedQueryEncoder:
    """Looks atoms up in JSON Lines of ``{"text", "vector"}``. ``contents`` or ``query`` may stand for ``text``.

    Args:
        path: The file, plain or gzip.

    Attributes:
        name: The model that made the vectors, where the file says it.

    Raises:
        InputError: A missing file, one without atoms, or a line that is no JSON object.
        EncodingError: A line without text or vector, a bad weight, a text with two vectors, or two models in one file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = source_name(path)
        self._vectors: dict[str, dict[str, float]] = {}
        self.name: str | None = None
        for line, record in iter_jsonl(path):
            source = f"{self._path}:{line}"
            text = next((record[name] for name in _TEXT_FIELDS if isinstance(record.get(name), str)), None)
            if text is None or not isinstance(record.get("vector"), dict):
                raise EncodingError(f"{source}: expected {_LINE}")
            vector = checked(record["vector"], source)
            if self._vectors.setdefault(text.strip(), vector) != vector:
                raise EncodingError(f"{source}: {text!r} has another vector on an earlier line")
            if "encoder" in record:
                self._set_name(record["encoder"], source)
        if not self._vectors:
            raise InputError(f"{self._path}: no atoms; expected lines of {_LINE}")

    @property
    def terms(self) -> set[str]:
        """All terms of the vectors."""
        return set().union(*self._vectors.values())

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text.

        Raises:
            EncodingError: A text that the file does not have.
        """
        texts = checked_list("texts", texts)
        missing = next((text for text in texts if text.strip() not in self._vectors), None)
        if missing is not None:
            raise EncodingError(f"{self._path} has no vector for {missing!r}; encode it and add a line")
        return [dict(self._vectors[text.strip()]) for text in texts]

    def _set_name(self, name: object, source: str) -> None:
        if not isinstance(name, str):
            raise EncodingError(f"{source}: the `encoder` must be a text, got {json_kind(name)}")
        if self.name not in (None, name):
            raise EncodingError(f"{source}: the vector is of {name!r}, those before it are of {self.name!r}")
        self.name = name
