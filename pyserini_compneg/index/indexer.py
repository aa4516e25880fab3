"""An indexer for programs: it takes the vectors of documents, and makes an index of them atomically."""

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
from pyserini_compneg.lucene import ImpactWriter, IndexSettings, Manifest, java_class
from pyserini_compneg.support.errors import EncodingError, InputError

_PROCESSORS = os.cpu_count() or 1
_BATCH = 512
_PLANNED = ("store_raw", "store_docvectors", "shard")
"""Settings that are not in the manifest, and without which a build cannot be continued."""

_logger = logging.getLogger(__name__)


class ImpactIndexer:
    """Builds an impact index that stock Anserini and Pyserini can read, too. Use it as a context manager.

    When the context is left without an exception, the index appears atomically under its name. Until then an older
    index stays as it is. The impacts are written as term frequencies directly, where Anserini repeats tokens.

    Args:
        index: The folder of the index to make.
        encoder: The name of the model that makes the vectors, for the manifest.
        options: How the index is made; None for the defaults. No impact scale is 1.
        settings: What else the encoder depends on, for the manifest.
        sources: What the vectors are made of, in JSON; a build can only be continued with the same.
        **changes: Fields of :class:`IndexSettings`, instead of such an object or to change it. With
            ``existing="resume"`` or ``"replace"`` a build that was killed goes on from its last :meth:`checkpoint`.

    Attributes:
        position: What the last checkpoint was given, also that of a build that is continued; None before any.
        skipped: The number of documents that were skipped.

    Raises:
        OutputError: The folder exists and must not be replaced (on entry), or it cannot be written.
        InputError: Two documents have the same id, or no document has a term (on a clean exit).
        EncodingError: An encoder without a name.
        ArgumentError: A setting out of range.

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
            raise EncodingError(f"the encoder must have a name, bm25 or that of the vectors' model, got {encoder!r}")
        options = replace(options or IndexSettings(), **changes)
        scale, threads = options.impact_scale or 1.0, min(options.threads or _PROCESSORS, 4 * _PROCESSORS)
        self._options = replace(options, impact_scale=scale, threads=threads)
        java_class("io.compneg.ImpactIndexer")  # if there is no Java, say so before anything is made
        self._target = Path(os.path.realpath(index))
        made = {
            name: getattr(self._options, name) for name in ("impact_scale", "signed", "pair_terms", "filter_fields")
        }
        self._manifest = Manifest(encoder, dict(settings or {}), **made)
        self._sources = sources
        self._name = str(self._target)
        self._skip = options.on_error == "skip"
        self._added: list[tuple[str, str]] = []
        self._added_before = 0
        self.skipped = 0
        self.position: Any = None

    def __enter__(self) -> Self:
        planned = {name: getattr(self._options, name) for name in _PLANNED}
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
            _logger.warning("%d documents were skipped; see %s", self.skipped, self._target / SKIPPED_LOG)

    @property
    def manifest(self) -> Manifest:
        """The manifest, with the documents that are in so far."""
        documents, empty = self._writer.counts
        return replace(self._manifest, documents=documents, empty_documents=empty)

    def add(self, docid: str, vector: Mapping[str, float], raw: Mapping[str, Any] | None = None) -> None:
        """Adds a document.

        Args:
            docid: Its id, without white space.
            vector: Its terms, without white space, and their weights; numbers of numpy will do.
            raw: Its source, which ``store_raw`` keeps and ``filter_fields`` are read from; by default the id and the
                vector.

        Raises:
            InputError: A bad document, here or in a later call; with ``on_error="skip"`` it is listed instead.
        """
        line = json.dumps({"id": docid, "vector": vector}, ensure_ascii=False, default=_number)
        self._added.append((line, line if raw is None else json.dumps(raw, ensure_ascii=False)))
        if len(self._added) == _BATCH:
            self._flush()

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> None:
        """Adds a block of JSON lines, as :meth:`ImpactWriter.add_lines` has it.

        Raises:
            InputError: As with :meth:`add`.
        """
        self._report(self._writer.add_lines(lines, file, first_line, sources))

    def checkpoint(self, position: Any) -> None:
        """Makes durable what was added so far, so that the build can be continued after a kill.

        Args:
            position: Where to continue, in JSON; it comes back as the attribute of this name.
        """
        self.drain()
        self._log.flush()
        os.fsync(self._log.fileno())
        state = {"position": position, "skipped": self.skipped, "log_bytes": self._log.tell()}
        self._writer.commit(json.dumps(state))
        keep_unfinished(self._folder, self._plan)
        self.position = position

    def drain(self) -> None:
        """Waits until everything that was added is in.

        Raises:
            InputError: As with :meth:`add`.
        """
        self._flush()
        self._report(self._writer.drain())

    def _flush(self) -> None:
        """Hands the documents that :meth:`add` has collected to the threads."""
        if self._added:
            lines, sources = ("\n".join(texts).encode(errors="replace") for texts in zip(*self._added, strict=True))
            first, self._added_before = self._added_before + 1, self._added_before + len(self._added)
            self._added.clear()
            self.add_lines(lines, f"{self._target}: document", first, sources)

    def _restore(self) -> int:
        """Takes up the state of the last checkpoint; returns the length of the log at that time."""
        state = json.loads(self._writer.state or "{}")
        self.position, self.skipped = state.get("position"), state.get("skipped", 0)
        return int(state.get("log_bytes", 0))

    def _report(self, problems: Sequence[str]) -> None:
        """Takes the problems of documents, each as ``file:line: what is wrong``: raises the first, or logs them all."""
        if problems and not self._skip:
            raise InputError(problems[0])
        self._log.writelines(f"{problem}\n" for problem in problems)
        self.skipped += len(problems)

    def _check_duplicates(self) -> None:
        """Refuses an id that several documents have."""
        for docid in self._writer.duplicate_ids(1):
            raise InputError(f"document id {docid!r} is given twice", where=self._target)

    def _finish(self) -> None:
        self.drain()
        self._check_duplicates()
        self._check_content()
        if self._options.optimize or self._options.reorder:
            self._writer.optimize(self._options.reorder)
            self._check_content()  # documents whose id was given twice are gone only now
        if self.position is None:
            self._writer.commit()
        else:
            self.checkpoint(self.position)
        self.manifest.write(self._folder)
        self._log.flush()
        if not self.skipped:
            (self._folder / SKIPPED_LOG).unlink()

    def _check_content(self) -> None:
        """Refuses an index in which no search would find anything, or no filter by one of its fields would."""
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


def _number(value: Any) -> Any:
    """A number of numpy as one of Python, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise InputError(f"a weight must be a number, got {value!r}")
