"""An indexer for programs, which takes vectors of documents and writes their index atomically."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyserini_compneg.index.index_folder import SKIPPED_LOG, keep_unfinished, new_index_folder
from pyserini_compneg.lucene import ENGLISH, LEAST_REORDERED, ImpactWriter, IndexSettings, Manifest, java_class
from pyserini_compneg.lucene.index_settings import RECORDED, STORED
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError
from pyserini_compneg.support.json_objects import json_line
from pyserini_compneg.support.processors import bounded_threads
from pyserini_compneg.support.surrogates import utf8
from pyserini_compneg.support.terminal import shown

_BATCH = 512
_UNRANGED = (
    ("numbers", "numbers as texts", "remove the quotes"),
    ("dates", "dates not of ISO 8601", "write them as 1999-05-01"),
)

_logger = logging.getLogger(__name__)

NOT_REORDERED = "%s: is not reordered: Java's heap is too small; JAVA_TOOL_OPTIONS=-Xmx8g makes it 8 GB"


class VectorLines:
    """Collects the vectors of a program's documents in blocks of lines."""

    def __init__(self, name: str) -> None:
        self._place = name
        self._added: list[tuple[str, str]] = []
        self._added_before = 0

    def _collect(self, docid: str, vector: Mapping[str, float], raw: Mapping[str, Any] | None) -> None:
        place = f"{self._place}: document:{self._added_before + len(self._added) + 1}"
        try:
            line = json_line({"id": docid, "vector": vector}, place)
            self._added.append((line, line if raw is None else json_line(raw, place)))
        except InputError as error:
            self._report([str(error)])
            self._added.append(("", ""))  # later documents keep their numbers
        if len(self._added) == _BATCH:
            self._flush()

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> None:
        raise NotImplementedError

    def _report(self, problems: Sequence[str]) -> None:
        raise NotImplementedError

    def _flush(self) -> None:
        """Passes the documents that were collected to the threads."""
        if self._added:
            lines, sources = (utf8("\n".join(texts)) for texts in zip(*self._added, strict=True))
            first, self._added_before = self._added_before + 1, self._added_before + len(self._added)
            self._added.clear()
            self.add_lines(lines, f"{self._place}: document", first, sources)


class ImpactIndexer(VectorLines):
    """Builds an impact index, which stock Anserini and Pyserini can also read. Use it as a context manager.

    The index appears atomically under its name when the context ends without an exception. Until then an existing index
    stays unchanged. Impacts are written directly as term frequencies; Anserini repeats tokens instead.

    Args:
        index: The folder of the new index.
        encoder: The name of the model that makes the vectors, for the manifest.
        options: The settings of the index; None for the defaults. An impact scale of None means 1.
        settings: Further settings of the encoder, for the manifest; the language of BM25 as ``language``.
        sources: The sources of the vectors, in JSON. A build can only be continued with equal sources.
        **changes: Fields of :class:`IndexSettings`. They replace ``options``, or change it. With ``existing="resume"``
            or ``"replace"`` a killed build continues from its last :meth:`checkpoint`.

    Attributes:
        position: The position of the last checkpoint, including a checkpoint of the continued build; None before the
            first.
        skipped: The number of documents that were skipped.

    Raises:
        OutputError: The folder exists and must not be replaced (on entry), or it cannot be written.
        InputError: Two documents have the same id, or no document has a term (on a clean exit).
        EncodingError: The encoder has no name.
        ArgumentError: A setting is out of range.

    Example:
        >>> with ImpactIndexer("indexes/mine", "splade", impact_scale=51.2) as indexer:  # doctest: +SKIP
        ...     indexer.add("d1", {"bird": 1.5, "fly": 0.25})
    """

    def __init__(
        self,
        index: str | Path,
        encoder: str,
        options: IndexSettings | None = None,
        *,
        settings: Mapping[str, float | int | str] | None = None,
        sources: Any = None,
        **changes: Any,
    ) -> None:
        if not encoder.strip():
            raise EncodingError(
                f"the encoder must have a name, bm25 or the name of the vectors' model, got {encoder!r}"
            )
        options = replace(options or IndexSettings(), **changes)
        scale, threads = options.impact_scale or 1.0, bounded_threads(options.threads)
        self._options = replace(options, impact_scale=scale, threads=threads)
        java_class("io.compneg.index.ImpactIndexer")  # without Java, fail before creating a file
        self._target = Path(os.path.realpath(index))
        super().__init__(str(self._target))
        made = {name: getattr(self._options, name) for name in RECORDED}
        made["pair_scale"] = options.pair_scale if options.pair_terms or options.pairs else 1
        further = dict(settings or {})
        made["language"] = further.pop("language", ENGLISH)
        self._manifest = Manifest(encoder, further, **made)
        self._sources = sources
        self._name = str(self._target)
        self._skip = options.on_error == "skip"
        self.skipped = 0
        self.position: Any = None

    def __enter__(self) -> Self:
        planned = {name: getattr(self._options, name) for name in STORED}
        self._plan = self._manifest.to_json() | planned | {"sources": self._sources}
        with ExitStack() as stack:
            self._folder = stack.enter_context(new_index_folder(self._target, self._plan, self._options))
            writer = ImpactWriter(self._folder, self._options, name=str(self._target))
            self._writer = stack.enter_context(writer)
            log_bytes = self._restore()
            self._log = stack.enter_context((self._folder / SKIPPED_LOG).open("a", encoding="utf-8"))
            self._log.truncate(log_bytes)
            self._log.seek(log_bytes)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._stack.__exit__(kind, error, traceback)
            return
        with self._stack:
            self._finish()
        if self.skipped:
            were = "1 document was" if self.skipped == 1 else f"{self.skipped:,} documents were"
            _logger.warning("%s skipped; see %s", were, self._target / SKIPPED_LOG)

    @property
    def manifest(self) -> Manifest:
        """The manifest, with the counts of the documents added so far."""
        documents, empty = self._writer.counts
        return replace(self._manifest, documents=documents, empty_documents=empty)

    def add(self, docid: str, vector: Mapping[str, float], raw: Mapping[str, Any] | None = None) -> None:
        """Adds a document.

        Args:
            docid: The document's id, without white space.
            vector: The document's terms, without white space, and their weights, which may be numbers of numpy.
            raw: The document's source, which ``store_raw`` stores and ``filter_fields`` are read from, with values as
                in :func:`build_index`; the default is the id and the vector.

        Raises:
            InputError: A document is bad: this one, or one of an earlier call. With ``on_error="skip"`` it is listed
                instead.
        """
        refuse_vectors_of_passages(self._options.passages)
        self._collect(docid, vector, raw)

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> None:
        """Adds a block of JSON lines; see :meth:`ImpactWriter.add_lines`.

        Raises:
            InputError: See :meth:`add`.
        """
        self._report(self._writer.add_lines(lines, file, first_line, sources))

    def checkpoint(self, position: Any) -> None:
        """Makes the documents added so far durable, so that the build can be continued after a kill.

        Args:
            position: The position from which to continue, in JSON. A continued build has it in the attribute
                ``position``.
        """
        self.drain()
        self._log.flush()
        os.fsync(self._log.fileno())
        state = {"position": position, "skipped": self.skipped, "log_bytes": self._log.tell()}
        self._writer.commit(json.dumps(state))
        keep_unfinished(self._folder, self._plan)
        self.position = position

    def drain(self) -> None:
        """Waits until all added documents are in the index.

        Raises:
            InputError: See :meth:`add`.
        """
        self._flush()
        self._report(self._writer.drain())

    def _restore(self) -> int:
        """Restores the state of the last checkpoint. Returns the length of the log at that time."""
        state = json.loads(self._writer.state or "{}")
        self.position, self.skipped = state.get("position"), state.get("skipped", 0)
        return int(state.get("log_bytes", 0))

    def _report(self, problems: Sequence[str]) -> None:
        """Handles problems of documents, each as ``file:line: problem``: raises the first, or logs all."""
        if problems and not self._skip:
            raise InputError(problems[0])
        self._log.writelines(f"{problem}\n" for problem in problems)
        self.skipped += len(problems)

    def _check_duplicates(self) -> None:
        for docid in self._writer.duplicate_ids(1):
            raise InputError(f"document id {docid!r} is given twice", where=self._target)

    def _finish(self) -> None:
        self.drain()
        self._check_duplicates()
        self._check_content()
        warn_of_unranged_texts(str(self._target), self._options.filter_fields, self._writer)
        asked = self._options.reorder
        # Pairs are too many terms to order documents by.
        by_default = (
            asked is None
            and not (self._options.pair_terms or self._options.pairs)
            and self._writer.counts[0] >= LEAST_REORDERED
        )
        reorder = asked or by_default
        if self._options.optimize or reorder:
            reordered = self._writer.optimize(reorder, required=not by_default)
            if reorder and not reordered:
                _logger.warning(NOT_REORDERED, self._target)
            self._check_content()  # documents with repeated ids have now been removed
        if self.position is None:
            self._writer.commit()
        else:
            self.checkpoint(self.position)
        self.manifest.write(self._folder)
        self._log.flush()
        if not self.skipped:
            (self._folder / SKIPPED_LOG).unlink()

    def _check_content(self) -> None:
        """Refuses an index if no search can find anything, or if no document has one of the filter fields."""
        documents, empty = self._writer.counts
        if documents == empty:
            without = f"none of {documents} documents has a term at impact scale {self._manifest.impact_scale:g}"
            said = f"nothing to index: {without if documents else 'no documents'}{self._why()}"
            if self._options.shard:
                raise InputError(f"{said} in {self._target.name}", where=self._name, remedy="build fewer shards")
            raise InputError(said, where=self._name)
        if not self._options.shard and (field := self._writer.missing_field()) is not None:
            raise InputError(f"no document has the filter field {field!r}", where=self._name, remedy="leave it out")

    def _why(self) -> str:
        if not self.skipped:
            return ""
        self._log.flush()
        with (self._folder / SKIPPED_LOG).open(encoding="utf-8") as log:
            return f"; {self.skipped} were skipped, the first because {log.readline().rstrip()}"


def warn_of_unranged_texts(place: str, fields: Sequence[str], *writers: ImpactWriter) -> None:
    """Warns of texts in filter fields that no range finds, in the documents that the writers of an index have got."""
    texts = [writer.unranged_texts() for writer in writers]
    for kind, what, remedy in _UNRANGED:
        found: dict[str, tuple[int, str]] = {}
        for field, (count, text) in (each for one in texts for each in one[kind].items()):
            if field in fields:
                found[field] = found.get(field, (0, ""))[0] + count, text
        if found:
            listed = ", ".join(f"{field} ({count:,}, such as {shown(text)})" for field, (count, text) in found.items())
            said = "%s: filter fields have %s, which ranges do not find: %s; %s"
            _logger.warning(said, place, what, listed, remedy)


def refuse_vectors_of_passages(passages: Mapping[str, int]) -> None:
    """Refuses a program's vectors in an index of passages."""
    if passages:
        what = "a vector cannot be split into passages"
        raise ArgumentError(what, remedy="give files with `vectors` to index or update, or leave out passages")
