"""Writes impact indexes with Anserini's fields, through the Java companion."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from pyserini_compneg.expression.filters import ID
from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.lucene.index_settings import RECORDED, STORED, IndexSettings
from pyserini_compneg.lucene.reader import CONTENTS
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import OutputError
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.surrogates import utf8

LONGEST_TERM_BYTES = 32766
"""Lucene's limit for a term, and therefore for an id, in bytes of UTF-8."""

_MEMORY_BUFFER_MB = 64.0
_MISSING = 1 << 14
_MILLISECONDS = 100
"""So often Python can hear Ctrl-C while it waits for Java."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


class _Exchange:
    """A file for passing bytes to Java: in memory, or on disk if the system has no files in memory."""

    def __init__(self) -> None:
        self._on_disk = not hasattr(os, "memfd_create")
        if self._on_disk:
            number, self.path = tempfile.mkstemp()
        else:
            number = os.memfd_create("compneg")
            self.path = f"/proc/self/fd/{number}"
        self._file = open(number, "wb")  # noqa: SIM115

    def write(self, *parts: bytes) -> None:
        self._file.seek(0)
        self._file.writelines(parts)
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        if self._on_disk:
            with suppress(OSError):
                os.unlink(self.path)


class Found(IntEnum):
    """What a line of an update holds, compared with the index: no document, a new one, and so on."""

    NOTHING = 0
    NEW = 1
    CHANGED = 2
    UNCHANGED = 3
    REPEATED = 4  # given before in this update


class ImpactWriter:
    """Writes an index from blocks of JSON lines. Use it as a context manager. Uncommitted documents are lost.

    A line is ``{"id", "vector": {term: weight}}``; other fields are ignored. Java's ``DocumentReader`` checks the
    line and turns weights into impacts. The writing methods return the problems of documents that could not be indexed,
    each as ``file:line: problem``, in the order of the lines. Threads do the work, so a later call may return a problem
    of an earlier block.

    Args:
        folder: An empty folder, or a folder with a commit from which to continue.
        settings: The settings of the index. None means 1 for the impact scale and 1 for the threads.
        name: The name of the index in messages; the default is the folder.
        update: Update the index in the folder: a document replaces the document with its id.
        commit: In an update of a shard, the segments file from which to start. Its commit stays until :meth:`release`.
        writers: The number of writers that share the memory for documents.
        **changes: Fields of the settings. They replace ``settings``, or change it.

    Raises:
        OutputError: The folder cannot be written, or the disk is full. Every method may raise this.
    """

    def __init__(
        self,
        folder: Path,
        settings: IndexSettings | None = None,
        *,
        name: str | None = None,
        update: bool = False,
        commit: str | None = None,
        writers: int = 1,
        **changes: Any,
    ) -> None:
        settings = replace(settings or IndexSettings(), **changes)
        self._name = name or str(folder)
        new = "CREATE_OR_APPEND" if settings.may_resume else "CREATE"
        sent = {_camel(name): getattr(settings, name) for name in {*RECORDED, *STORED} - {"passages"}}
        sent |= {
            "field": CONTENTS,
            "impactScale": settings.impact_scale or 1.0,
            "filterFields": settings.indexed_fields,
            "threads": settings.threads or 1,
            "memoryBufferMb": _MEMORY_BUFFER_MB / writers,
            "mode": "APPEND" if update else new,
        }
        indexer = java_class("io.compneg.update.ImpactUpdater" if update else "io.compneg.index.ImpactIndexer")
        base = [commit] if update else []
        self._exchange = _Exchange()
        try:
            with self._java_errors():
                self._indexer = indexer(os.path.abspath(folder), json.dumps(sent), self._exchange.path, *base)
        except BaseException:
            self._exchange.close()
            raise

    def __enter__(self) -> ImpactWriter:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call(lambda java: java.close())
            self._until(lambda java: java.closed(_MILLISECONDS))
        finally:
            self._exchange.close()

    @property
    def state(self) -> str | None:
        """The state that the continued commit or the last update stored; None for a new index."""
        state: str | None = self._call(lambda java: java.state())
        return state

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of documents and of documents without a term, excluding blocks that threads still work on."""
        documents, empty = self._call(lambda java: java.counts())
        return documents, empty

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> list[str]:
        """Adds documents. Waits only while too many blocks are in work.

        Args:
            lines: JSON lines in UTF-8. Blank lines count as lines.
            file: The file of the lines, for messages.
            first_line: The number of the first line in the file.
            sources: The sources to store, one line for each of ``lines``; the default is the lines themselves.
        """
        name = utf8(file)
        self._exchange.write(name, lines, sources or b"")
        sizes = len(name), len(lines), -1 if sources is None else len(sources)
        self._call(lambda java: java.add(*sizes, first_line))
        return self._collected(False)

    def drain(self) -> list[str]:
        """Waits until every document is in the index."""
        return self._collected(True)

    def commit(self, state: str | None = None) -> None:
        """Makes the current content of the index durable.

        Args:
            state: The :attr:`state` for a later process that continues from this commit; None for a complete index.
        """
        self._call(lambda java: java.commit(state))

    def compare(self, lines: bytes, sources: bytes = b"", *, remembers: bool = True) -> bytes:
        """What each line of a block holds for an update: a :class:`Found`.

        Args:
            lines: JSON lines, as for :meth:`add_lines`. The vectors are not compared and may be empty.
            sources: The sources to compare with the sources of the indexed documents; empty for the lines themselves.
            remembers: Remember new ids, so that an id that comes again is found to be ``REPEATED``.
        """
        check_heap(2 * len(lines) + len(sources))
        return bytes(self._call(lambda java: java.compare(lines, sources, remembers)).tostring())

    def unfit(self) -> str | None:
        """Why an index of stock Anserini cannot be updated as one of impacts, or None if it can."""
        why: str | None = self._call(lambda java: java.unfit())
        return why

    def remove(self, ids: Sequence[str]) -> bytes:
        """Deletes documents in an update. Returns what each id is: a :class:`Found`."""
        joined = "\n".join(ids).encode(errors="surrogatepass")
        check_heap(len(joined))
        return bytes(self._call(lambda java: java.remove(joined)).tostring())

    def missing(self, ending: str) -> list[str]:
        """The next ids with an ending of documents that the update has neither compared nor removed; empty at the end.

        ``_MISSING`` documents are looked at, or more until there is such an id.
        """
        return _texts(self._call(lambda java: java.missing(ending, _MISSING)))

    def settle(self) -> None:
        """Writes all documents, and does the merges that are due."""
        self._call(lambda java: java.settle())
        self._until(lambda java: java.optimized(_MILLISECONDS))

    def release(self) -> None:
        """Removes the commit from which the update started."""
        self._call(lambda java: java.release())

    def missing_field(self) -> str | None:
        """The first filter field that no document has, or None."""
        field: str | None = self._call(lambda java: java.missingField())
        return field

    def unranged_texts(self) -> dict[str, dict[str, tuple[int, str]]]:
        """The texts in filter fields that no range finds, ``numbers`` and ``dates``: how many there are, and one."""
        packed = self._call(lambda java: java.unrangedTexts())
        return {
            kind: {field: (texts["count"], texts["example"]) for field, texts in sorted(found.items())}
            for kind, found in json.loads(bytes(packed.tostring())).items()
        }

    def optimize(self, reorder: bool = False, *, required: bool = True) -> bool:
        """Merges the index into one segment.

        Args:
            reorder: Put documents that share terms beside each other, and write block maxima and block postings.
            required: Raise an error if Java's heap is too small for that. Otherwise the documents stay in their order.

        Returns:
            Whether the documents are in another order.
        """
        self._call(lambda java: java.optimize(reorder, required))
        stage = None
        with ExitStack() as shown:
            while not self._call(lambda java: java.optimized(_MILLISECONDS)):
                now, percent = self._call(lambda java: (java.stage(), int(100 * java.ordered())))
                if now != stage:
                    shown.close()
                    total = 100 if now == "reordering" else None
                    bar, stage = shown.enter_context(progress(None, total, " %", now)), now
                if now == "reordering":
                    bar.update(percent - bar.n)
        return bool(self._call(lambda java: java.reordered()))

    def duplicate_ids(self, most: int = 2**31 - 1) -> list[str]:
        """The first ids that several documents share, read from the index, so no list of all ids is held in memory."""
        return _texts(self._call(lambda java: java.duplicateIds(most)))

    def find(self, lines: bytes, ids: Iterable[str]) -> list[tuple[int, str]]:
        """Finds valid documents with these ids in a block of JSON lines.

        Returns:
            The line number, from 0, and the id of each document found.
        """
        joined = "\n".join(checked_list("ids", ids)).encode()
        check_heap(len(lines) + len(joined))
        matches = _texts(self._call(lambda java: java.find(lines, joined)))
        return [(int(number), docid) for number, _, docid in (line.partition(" ") for line in matches)]

    def delete(self, values: Iterable[str], merge: bool = True, field: str = ID) -> None:
        """Removes all documents with one of these values of a field.

        Args:
            values: The values, such as ids.
            merge: Rewrite the affected segments now. Otherwise :meth:`optimize` does, and deleted documents are counted
                until then.
            field: The id, or a filter field.
        """
        joined = "\n".join(checked_list("values", values)).encode()
        check_heap(len(joined))
        self._call(lambda java: java.delete(joined, field, merge))

    def _collected(self, every: bool) -> list[str]:
        """The problems of finished documents: of all documents, or until there is room for more."""
        return _texts(self._until(lambda java: java.collect(every, _MILLISECONDS)))

    def _until(self, done: Callable[[Any], Any]) -> Any:
        """Repeats a call that waits for a short time until it returns an answer, so Python hears Ctrl-C in between."""
        while (answer := self._call(done)) is None or answer is False:
            pass
        return answer

    def _java_errors(self) -> AbstractContextManager[None]:
        return java_errors(OutputError, "the index cannot be written", self._name)

    def _call(self, call: Callable[[Any], Any]) -> Any:
        """Calls a method of the Java indexer, as :func:`~pyserini_compneg.lucene.gate.java_errors` requires."""
        with self._java_errors():
            return call(self._indexer)


def _texts(answer: Any) -> list[str]:
    text = bytes(answer.tostring()).decode()
    return text.split("\n") if text else []
