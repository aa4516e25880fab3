"""What hosts hold in memory, as the engine takes it: documents and vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyserini_compneg.index import build_index
from pyserini_compneg.support.errors import CompNegError


def index_records(records: Iterable[Mapping[str, Any]], index: str | Path, encoder: str, **options: Any) -> None:
    """Builds an index of records, which pass through a temporary file: BM25 reads a collection twice.

    Args:
        records: Documents, with the fields that lines of a collection have; numbers of numpy will do.
        index: As for :func:`build_index`, and so are the rest.
        encoder: What encodes the texts, or the name of what made the vectors.
        **options: Further options.

    Raises:
        CompNegError: As :func:`build_index`; documents are named by their number, from 1.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, default=_number) + "\n")
        try:
            build_index(path, index, encoder, **options)
        except CompNegError as error:
            raise type(error)(str(error).replace(f"{path}:", "document ")) from None


def plain_vector(vector: Any) -> Any:
    """A vector with numbers of Python in place of numpy's. What is no vector stays as it is, and is refused later."""
    return {term: _number(weight) for term, weight in vector.items()} if hasattr(vector, "items") else vector


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
