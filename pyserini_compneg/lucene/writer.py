"""Writes impact indexes with Anserini's fields, through the Java companion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyserini_compneg.errors import OutputError
from pyserini_compneg.lucene.gate import java_class, message_of
from pyserini_compneg.lucene.reader import CONTENTS

LARGEST_IMPACT = 1 << 20
"""Larger impacts would leave the range in which scores are exact to the last bit; Lucene's own limit is 2^31 - 1."""

LONGEST_TERM_BYTES = 32766
"""Lucene's limit for a term, and so for an id, in UTF-8."""

_BATCH_CHARACTERS = 1 << 21
_MEMORY_BUFFER_MB = 256.0


class ImpactWriter:
    """Writes one new index. Use it as a context manager; an index is whole only after :meth:`finish`.

    Args:
        folder: An empty folder.
        threads: Threads that write.

    Raises:
        OutputError: The folder cannot be written, or the disk is full, here and in every method.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._folder = folder
        self._batch: list[str] = []
        self._characters = 0
        self._writer = self._call(
            java_class("io.compneg.ImpactWriter"), str(folder), CONTENTS, threads, _MEMORY_BUFFER_MB
        )

    def __enter__(self) -> ImpactWriter:
        """Returns the writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the index without finishing it."""
        self._call(self._writer.close)

    def add(self, docid: str, impacts: Mapping[str, int], raw: str | None = None) -> None:
        """Adds a document.

        Args:
            docid: Its id.
            impacts: Terms and impacts, 1 to ``LARGEST_IMPACT``; may be empty.
            raw: The source to store, if any.
        """
        document: dict[str, object] = {"id": docid, "vector": impacts}
        if raw is not None:
            document["raw"] = raw
        line = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self._batch.append(line)
        self._characters += len(line)
        if self._characters >= _BATCH_CHARACTERS:
            self._flush()

    def finish(self, optimize: bool = False) -> str | None:
        """Makes the index durable.

        Args:
            optimize: Merge it into one segment.

        Returns:
            An id that two documents have, or None; found from the index, so that no list of ids is held in memory.
        """
        self._flush()
        self._call(self._writer.finish, optimize)
        duplicate: str | None = self._call(self._writer.duplicateId)
        return duplicate

    def _flush(self) -> None:
        if self._batch:
            self._call(self._writer.add, "\n".join(self._batch).encode())
        self._batch, self._characters = [], 0

    def _call(self, function, *arguments):  # type: ignore[no-untyped-def]  # a Java method has no type
        try:
            return function(*arguments)
        except Exception as cause:
            raise OutputError(f"{self._folder}: the index cannot be written: {message_of(cause)}") from None
