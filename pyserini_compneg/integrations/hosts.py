"""Shared code of the modules for hosts: versions of hosts, and documents and vectors in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyserini_compneg.documents.collection import Part
from pyserini_compneg.documents.formats import CollectionFile
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.index.build import build_part, checked_build
from pyserini_compneg.support.errors import install_hint

_DOCUMENTS = "documents"
"""The name of the documents in messages, instead of the path of a file."""


def require(host: str, floor: str, extra: str | None = None) -> None:
    """Raises ``ImportError`` if the distribution of a host is missing or older than ``floor``.

    ``extra`` is the extra of this package that installs the host; the default is the name of the host.
    """
    remedy = install_hint(extra or host)
    try:
        found = metadata.version(host)
    except metadata.PackageNotFoundError:
        raise ImportError(f"{host} is not installed, and {floor} or later is needed: {remedy}") from None
    if _numbers(found) < _numbers(floor):
        raise ImportError(f"{host} {found} is too old, {floor} or later is needed: {remedy}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:2]]


def index_records(
    records: Iterable[Mapping[str, Any]],
    index: str | Path,
    encoder: str,
    *,
    model_options: ModelOptions | None = None,
    bm25: Mapping[str, float | str] | None = None,
    **settings: Any,
) -> None:
    """Builds an index of documents with the fields of a collection's lines; see :func:`build_index`.

    Errors number the documents from 1. The documents pass through a temporary file, because BM25 reads a collection
    twice.
    """
    build = checked_build(encoder, model_options, bm25, settings)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, default=_number) + "\n")
        build_part(_DOCUMENTS, Part([CollectionFile(path, label=_DOCUMENTS)]), index, build)


def plain_vector(vector: Any) -> Any:
    """A vector with Python numbers in place of numpy's. Other types are returned unchanged, and refused later."""
    return {term: _number(weight) for term, weight in vector.items()} if hasattr(vector, "items") else vector


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
