"""What the readers of sparse and of dense indexes share: an index that is open for searching."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pyserini_compneg.errors import IndexFormatError
from pyserini_compneg.lucene.gate import java_class, java_errors


class OpenIndex:
    """An index that a Java searcher has open. Close it, or use it as a context manager.

    Attributes:
        folder: Its folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _open(self, searcher: str, *arguments: object) -> None:
        """Opens it.

        Args:
            searcher: The name of a Java class.
            arguments: The arguments of its constructor after the folder.

        Raises:
            IndexFormatError: The folder holds no Lucene index, or one of another kind.
        """
        if not any(self.folder.glob("segments_*")):
            raise IndexFormatError(f"{self.folder}: not a Lucene index (it has no segments file)")
        made = java_class(searcher)
        with java_errors(IndexFormatError, f"{self.folder}: cannot be opened"):
            self._searcher = made(os.path.abspath(self.folder), *arguments)

    def __enter__(self) -> Self:
        """Returns the reader itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the index."""
        self.close()

    def close(self) -> None:
        """Closes the index; may be called twice."""
        self._call(self._searcher.close)

    @property
    def document_count(self) -> int:
        """The number of documents that are not deleted."""
        return int(self._call(self._searcher.documentCount))

    def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        with java_errors(IndexFormatError, f"{self.folder}: cannot be searched"):
            return function(*arguments)
