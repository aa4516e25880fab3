"""Writes impact indexes with Anserini's fields, through the Java companion."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.lucene.index_settings import IndexSettings
from pyserini_compneg.lucene.reader import CONTENTS
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import OutputError

LONGEST_TERM_BYTES = 32766
"""Lucene's limit for a term, and so for an id, in UTF-8."""

_MEMORY_BUFFER_MB = 64.0
_MILLISECONDS = 100
"""So often Python can hear Ctrl-C while it waits for Java."""


class _Exchange:
    """A file in which bytes are passed to Java: in memory, or on the disk where the system has no such files."""

    def __init__(self) -> None:
        self._on_disk = not hasattr(os, "memfd_create")
        if self._on_disk:
            number, self.path = tempfile.mkstemp()
        else:
            number = os.memfd_create("compneg")
            self.path = f"/proc/self/fd/{number}"
        self._file = open(number, "wb")  # noqa: SIM115

    def write(self, *parts: bytes) -> None:
        """Writes from the start."""
        self._file.seek(0)
        self._file.writelines(parts)
        self._file.flush()

    def close(self) -> None:
        """Removes the file."""
        self._file.close()
        if self._on_disk:
            with suppress(OSError):
                os.unlink(self.path)


class ImpactWriter:
    """Writes an index from blocks of JSON lines. Use it as a context manager; what is not committed is lost.

    A line is ``{"id", "vector": {term: weight}}``; other fields do not matter. ``io.compneg.DocumentReader`` checks it
    and makes impacts of the weights. The methods that write return the problems of the documents that could not be
    indexed, each as ``file:line: what is wrong``, in the order of the lines. Because threads do the work, a problem may
    be returned by a later call.

    Args:
        folder: An empty folder, or one with a commit to continue from.
        settings: How the index is made. None for an impact scale is 1, and for threads 1.
        name: The index's name in messages, by default the folder.
        **changes: Fields of the settings, instead of such an object or to change it.

    Raises:
        OutputError: The folder cannot be written, or the disk is full, here and in every method.
    """

    def __init__(
        self,
        folder: Path,
        settings: IndexSettings | None = None,
        *,
        name: str | None = None,
        **changes: Any,
    ) -> None:
        settings = replace(settings or IndexSettings(), **changes)
        self._name = name or str(folder)
        sent = {
            "field": CONTENTS,
            "impactScale": settings.impact_scale or 1.0,
            "signed": settings.signed,
            "pairTerms": settings.pair_terms,
            "storeRaw": settings.store_raw,
            "storeDocvectors": settings.store_docvectors,
            "filterFields": settings.filter_fields,
            "shard": settings.shard,
            "threads": settings.threads or 1,
            "memoryBufferMb": _MEMORY_BUFFER_MB,
            "resume": settings.may_resume,
        }
        indexer = java_class("io.compneg.ImpactIndexer")
        self._exchange = _Exchange()
        try:
            with self._java_errors():
                self._indexer = indexer(os.path.abspath(folder), json.dumps(sent), self._exchange.path)
        except BaseException:
            self._exchange.close()
            raise

    def __enter__(self) -> ImpactWriter:
        """Returns the writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the index without a commit."""
        try:
            self._call(lambda java: java.close())
            self._until(lambda java: java.closed(_MILLISECONDS))
        finally:
            self._exchange.close()

    @property
    def state(self) -> str | None:
        """The state in the commit that is continued; None for a new index."""
        state: str | None = self._call(lambda java: java.state())
        return state

    @property
    def counts(self) -> tuple[int, int]:
        """The documents written, and how many of them have no term; without the blocks that threads still work on."""
        documents, empty = self._call(lambda java: java.counts())
        return documents, empty

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> list[str]:
        """Adds documents; waits only while threads have too many blocks to work on.

        Args:
            lines: JSON lines in UTF-8; blank ones count as lines.
            file: Their file, for messages.
            first_line: The number of the first line in the file.
            sources: What to store for each document, a line for each of ``lines``; by default the lines themselves.
        """
        name = file.encode(errors="replace")
        self._exchange.write(name, lines, sources or b"")
        sizes = len(name), len(lines), -1 if sources is None else len(sources)
        self._call(lambda java: java.add(*sizes, first_line))
        return self._collected(False)

    def drain(self) -> list[str]:
        """Waits until every document is in the index."""
        return self._collected(True)

    def commit(self, state: str | None = None) -> None:
        """Makes durable what is in the index.

        Args:
            state: For :attr:`state`, if a later process continues from this commit; None for a complete index.
        """
        self._call(lambda java: java.commit(state))

    def missing_field(self) -> str | None:
        """The first of the filter fields that no document has; None if there is none."""
        field: str | None = self._call(lambda java: java.missingField())
        return field

    def optimize(self, reorder: bool = False) -> None:
        """Merges the index into one segment.

        Args:
            reorder: Put documents that share terms beside each other, and write the block maxima of that order.
        """
        self._call(lambda java: java.optimize(reorder))
        self._until(lambda java: java.optimized(_MILLISECONDS))

    def duplicate_ids(self, most: int = 2**31 - 1) -> list[str]:
        """The first ids that several documents have, read from the index, so that memory holds no list of all ids."""
        return _texts(self._call(lambda java: java.duplicateIds(most)))

    def find(self, lines: bytes, ids: Iterable[str]) -> list[tuple[int, str]]:
        """Finds the good documents of these ids in a block of JSON lines.

        Returns:
            For each of them the number of its line, from 0, and its id.
        """
        joined = "\n".join(checked_list("ids", ids)).encode()
        check_heap(len(lines) + len(joined))
        matches = _texts(self._call(lambda java: java.find(lines, joined)))
        return [(int(number), docid) for number, _, docid in (line.partition(" ") for line in matches)]

    def delete(self, ids: Iterable[str], merge: bool = True) -> None:
        """Removes all documents of these ids.

        Args:
            ids: The ids.
            merge: Rewrite what holds them; otherwise :meth:`optimize` does, and until then they are counted.
        """
        joined = "\n".join(checked_list("ids", ids)).encode()
        check_heap(len(joined))
        self._call(lambda java: java.delete(joined, merge))

    def _collected(self, every: bool) -> list[str]:
        """The problems of the documents that are done, when all are, or when there is room for more."""
        return _texts(self._until(lambda java: java.collect(every, _MILLISECONDS)))

    def _until(self, done: Callable[[Any], Any]) -> Any:
        """Calls a method that waits for a moment, until it has an answer, so that Python hears Ctrl-C between calls."""
        while (answer := self._call(done)) is None or answer is False:
            pass
        return answer

    def _java_errors(self) -> AbstractContextManager[None]:
        return java_errors(OutputError, "the index cannot be written", self._name)

    def _call(self, call: Callable[[Any], Any]) -> Any:
        """Calls a method of the Java indexer, as :func:`~pyserini_compneg.lucene.gate.java_errors` asks for."""
        with self._java_errors():
            return call(self._indexer)


def _texts(answer: Any) -> list[str]:
    text = bytes(answer.tostring()).decode()
    return text.split("\n") if text else []
