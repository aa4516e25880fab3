"""``compneg.json``: what an index was made with. It is beside Lucene's files, and is checked whenever one searches."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pyserini_compneg.support.errors import IndexReadError
from pyserini_compneg.support.files import atomic_writer
from pyserini_compneg.support.json_objects import parse_json_object

MANIFEST_NAME = "compneg.json"
SHARDS_NAME = "compneg-shards.json"
"""The file of an index that consists of shards; see ``shard_list``."""

FORMAT_VERSION = 1

LARGEST_IMPACT = 1 << 20
"""Larger impacts would leave the range in which scores are exact to the last bit; Lucene's own limit is 2^31 - 1."""

_BM25 = ("k1", "b", "average_length")
_COMMIT = re.compile("segments_[0-9a-z]+")


@dataclass(frozen=True, slots=True)
class Manifest:
    """How the impacts of an index were made.

    Attributes:
        encoder: The encoder's name, ``bm25``, or the model that made the vectors.
        settings: What else the encoder depends on, for BM25 ``k1``, ``b`` and the average document length in terms.
        impact_scale: Impact = round(weight * impact_scale); 1 for vectors that came as impacts.
        signed: Whether negative document weights were indexed.
        pair_terms: Of how many terms of a document the pairs were indexed; 0 for none.
        documents: How many documents there are.
        empty_documents: How many of them have no term at all.
        filter_fields: The fields of documents that a search can filter by.
        format_version: The version of this file's layout.
    """

    encoder: str
    settings: Mapping[str, float | int | str] = field(default_factory=dict)
    impact_scale: float = 1.0
    signed: bool = False
    pair_terms: int = 0
    documents: int = 0
    empty_documents: int = 0
    filter_fields: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    def write(self, index: Path) -> None:
        """Writes the manifest into an index folder."""
        with atomic_writer(index / MANIFEST_NAME, "make room, or give another folder") as handle:
            handle.write(json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n")

    def to_json(self) -> dict[str, Any]:
        """The content of the file. Earlier releases do not know ``filter_fields``, so it is left out if it is empty."""
        return {name: value for name, value in asdict(self).items() if name != "filter_fields" or value}

    @classmethod
    def read(cls, index: Path) -> Manifest | None:
        """Reads the manifest of an index folder; None if it has none, as with an index of stock Anserini.

        Raises:
            IndexReadError: The manifest cannot be read, is of a later version, or has unknown keys or values.
        """
        path = index / MANIFEST_NAME
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as cause:
            raise IndexReadError(f"{path}: cannot be read: {cause}; rebuild the index") from None
        values = parse_json_object(text, str(path), IndexReadError)
        version = values.get("format_version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise IndexReadError(f"{path}: format version {version!r}, but this release reads {FORMAT_VERSION}")
        known = [entry.name for entry in fields(cls)]
        if unknown := sorted(values.keys() - set(known)):
            raise IndexReadError(f"{path}: unknown key {unknown[0]!r}; it was written by another release")
        if missing := sorted(set(known) - values.keys() - {"filter_fields"}):
            raise IndexReadError(f"{path}: the key {missing[0]!r} is missing; rebuild the index")
        values.setdefault("filter_fields", [])
        name = bad_value(values)
        if name is None and values["empty_documents"] > values["documents"]:
            name = "empty_documents"
        if name is not None:
            value = reprlib.repr(values[name])
            raise IndexReadError(f"{path}: bad value for {name!r}: {value}; rebuild the index")
        return cls(**{**values, "filter_fields": tuple(values["filter_fields"])})


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


_VALID: Mapping[str, Callable[[Any], bool]] = {
    "encoder": lambda value: isinstance(value, str) and bool(value.strip()) and value.isprintable(),
    "settings": lambda value: (
        isinstance(value, dict)
        and all(type(setting) in (str, int, float) for setting in value.values())
        and all(type(value.get(name, 0)) is not str and value.get(name, 0) >= 0 for name in _BM25)
    ),
    "impact_scale": lambda value: type(value) in (int, float) and 0 < value <= LARGEST_IMPACT,
    "signed": lambda value: isinstance(value, bool),
    "pair_terms": _is_count,
    "documents": _is_count,
    "empty_documents": _is_count,
    "filter_fields": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
}
"""For each key, whether a value is one that a build writes."""


def bad_value(values: Mapping[str, Any]) -> str | None:
    """The first key of a manifest, or of a part of one, whose value no build writes; None if there is none."""
    return next((name for name, is_valid in _VALID.items() if name in values and not is_valid(values[name])), None)


def is_index(folder: Path) -> bool:
    """Whether a folder holds a Lucene index, with a manifest or without, or the shards of one."""
    if (folder / SHARDS_NAME).is_file():
        return True
    return any(_COMMIT.fullmatch(path.name) and path.is_file() for path in folder.glob("segments_*"))
