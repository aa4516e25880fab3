"""All shards of an index together, for what no shard can tell alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from pyserini_compneg.lucene.gate import java_class, java_errors
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import IndexReadError


class ShardUnion:
    """The shards in some folders of this machine. Use it as a context manager.

    Args:
        folders: The folders.

    Raises:
        IndexReadError: One of them cannot be read.
    """

    def __init__(self, folders: Sequence[str | Path]) -> None:
        paths = "\n".join(map(os.path.abspath, checked_list("folders", folders))).encode()
        java = java_class("io.compneg.ShardUnion")
        with java_errors(IndexReadError, "the shards cannot be opened together"):
            self._java = java(paths)

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the shards."""
        self._call(lambda java: java.close())

    def _call(self, call: Callable[[Any], Any]) -> Any:
        with java_errors(IndexReadError, "the shards cannot be read together"):
            return call(self._java)

    def duplicate_id(self) -> str | None:
        """The first id that two documents have, in whichever shards; None if there is none."""
        docid: str | None = self._call(lambda java: java.duplicateId())
        return docid

    def documents_with(self, field: str) -> int:
        """How many documents have a filter field."""
        return int(self._call(lambda java: java.documentsWith(field)))
