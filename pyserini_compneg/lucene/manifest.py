"""``compneg.json`` records how an index was made. The file is beside Lucene's files, and every search checks it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.analysis import ENGLISH
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError
from pyserini_compneg.support.json_objects import parse_json_list
from pyserini_compneg.support.schema import entry, read_schema
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.support.vectors import is_pair

MANIFEST_NAME = "compneg.json"
QUERY_TOKENIZER = "compneg.tokenizer.json"
"""The file of an index that has the tokenizer of queries without a network, as documents of the model are split."""
INDEX_CONCEPTS = "concepts.json"
"""The file of an index of latents that has their names, a list in the order of their numbers."""
SHARDS_NAME = "compneg-shards.json"
"""The file of an index that consists of shards; see :mod:`pyserini_compneg.lucene.shards`."""

FORMAT_VERSION = 1

LARGEST_IMPACT = 1 << 20
"""Larger impacts would leave the range in which scores are exact to the last bit; Lucene's own limit is 2^31 - 1."""

BM25_SETTINGS = ("k1", "b", "average_length")
_COMMIT = re.compile("segments_[0-9a-z]+")


def _fit_bm25(settings: Mapping[str, Any]) -> bool:
    values = [settings.get(name, 0) for name in BM25_SETTINGS]
    return all(not isinstance(value, str) and value >= 0 for value in values)


def fit_pair_scale(scale: object) -> bool:
    """Whether the impacts of pairs can be multiplied by a number, so that the largest is an ``int`` of Java."""
    return type(scale) is int and 0 < scale < 2**31 // LARGEST_IMPACT and scale & (scale - 1) == 0


def fit_passages(passages: Mapping[str, Any]) -> bool:
    """Whether texts can be split into passages of these sizes: their ``words``, and their ``overlap`` in words."""
    words, overlap = passages.get("words"), passages.get("overlap")
    return len(passages) == 2 and type(words) is type(overlap) is int and 0 <= overlap < words


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of how the impacts of an index were made.

    Attributes:
        encoder: The encoder's name, ``bm25``, or the model that made the vectors.
        settings: Further settings of the encoder. For BM25: ``k1``, ``b`` and the average document length in terms.
        impact_scale: Impact = round(weight * impact_scale); 1 for vectors that came as impacts.
        signed: Whether negative document weights were indexed.
        pair_terms: The number of a document's heaviest terms whose pairs were indexed; 0 means no pairs.
        documents: The number of documents.
        empty_documents: The number of documents without a term.
        filter_fields: The fields of documents that a search can filter by.
        pairs: The chosen pairs, indexed in each document with both terms; empty if ``pair_terms`` chose the pairs.
        pair_scale: What the impacts of pairs are multiplied by before they are rounded, a power of two; 1 for an index
            of an earlier release.
        language: The language in which BM25 analysed the texts.
        passages: For an index of passages, their ``words`` and their ``overlap``. All counts are then of passages.
        format_version: The version of this file's layout.
    """

    encoder: str = entry(lambda name: bool(name.strip()) and name.isprintable())
    settings: Mapping[str, float | int | str] = field(default_factory=dict, metadata={"fits": _fit_bm25})
    impact_scale: float = entry(lambda scale: 0 < scale <= LARGEST_IMPACT, 1.0)
    signed: bool = False
    pair_terms: int = entry(lambda count: count >= 0, 0)
    documents: int = entry(lambda count: count >= 0, 0)
    empty_documents: int = entry(lambda count: count >= 0, 0)
    filter_fields: tuple[str, ...] = entry(lambda _: True, (), optional=True)
    pairs: tuple[str, ...] = entry(lambda pairs: all(map(is_pair, pairs)), (), optional=True)
    pair_scale: int = entry(fit_pair_scale, 1, optional=True)
    language: str = entry(bool, ENGLISH, optional=True)
    passages: Mapping[str, int] = field(
        default_factory=dict,
        metadata={"fits": lambda passages: not passages or fit_passages(passages), "optional": True},
    )
    format_version: int = FORMAT_VERSION

    def write(self, index: Path) -> None:
        """Writes the manifest into an index folder."""
        write_json(index / MANIFEST_NAME, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The content of the file. Optional keys are left out if they have their defaults."""
        usual, values = Manifest(self.encoder), asdict(self)
        optional = {one.name for one in fields(self) if one.metadata.get("optional")}
        left_out = {name for name in optional if values[name] == getattr(usual, name)}
        return {name: value for name, value in values.items() if name not in left_out}

    @classmethod
    def read(cls, index: Path) -> Manifest | None:
        """Reads the manifest of an index folder. An index of stock Anserini has no manifest and gives None.

        Raises:
            IndexReadError: The manifest cannot be read, is of a later version, or has unknown keys or values.
        """
        path, remedy = index / MANIFEST_NAME, "rebuild the index"
        try:
            manifest = read_schema(cls, path, FORMAT_VERSION, IndexReadError, remedy)
        except FileNotFoundError:
            return None
        if (empty := manifest.empty_documents) > manifest.documents:
            raise IndexReadError(f"bad value for 'empty_documents': {empty}", where=path, remedy=remedy)
        return manifest


def write_json(path: Path, values: Mapping[str, Any] | Sequence[str]) -> None:
    """Writes a file of an index atomically."""
    with atomic_writer(path, "make room, or give another folder") as handle:
        handle.write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def concept_names(folder: Path) -> list[str]:
    """The names of latents in the folder of an index; empty without a file of them."""
    path = folder / INDEX_CONCEPTS
    try:
        names = parse_json_list(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        names = [None]
    if not all(isinstance(name, str) for name in names):
        remedy = f"copy {INDEX_CONCEPTS} of the model again, or delete it"
        raise IndexReadError("damaged: expected a list of names", where=path, remedy=remedy)
    return names


def is_index(folder: Path) -> bool:
    """Whether a folder holds a Lucene index, with or without a manifest, or an index of shards."""
    return (folder / SHARDS_NAME).is_file() or bool(commits(folder))


def commits(folder: Path) -> list[Path]:
    """The segments files of an index, the last commit first. A killed update of shards may leave a commit."""
    found = [path for path in folder.glob("segments_*") if _COMMIT.fullmatch(path.name) and path.is_file()]
    return sorted(found, key=lambda path: int(path.name.partition("_")[2], 36), reverse=True)


def resolve_index(index: str | Path) -> Path:
    """The folder of an index.

    Args:
        index: The folder itself, or the name of a prebuilt index. A folder with this name takes precedence.

    Raises:
        IndexFormatError: There is no such folder and no such prebuilt index.
        DownloadError: A prebuilt index cannot be downloaded.
    """
    folder = Path(index)
    if folder.is_dir():
        return folder
    if isinstance(index, Path) or folder.name != index or folder.exists():
        remedy = "build one with compneg index"
        raise IndexFormatError("no such index folder", where=index, remedy=remedy)
    from pyserini_compneg.lucene.prebuilt import (
        prebuilt_folder,
    )  # its imports take time, and only prebuilt indexes need them

    return prebuilt_folder(index)
