"""An indexer for programs: it takes documents' vectors, and makes an index that is complete or not there."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from pyserini_compneg.expression.filters import checked_fields
from pyserini_compneg.index.index_folder import SKIPPED_LOG, keep_unfinished, new_index_folder
from pyserini_compneg.lucene import LARGEST_IMPACT, ImpactWriter, Manifest, java_class
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError

MOST_PAIR_TERMS = 256
"""So many terms have 32,640 pairs."""

OnError = Literal["stop", "skip"]

_PROCESSORS = os.cpu_count() or 1
_BATCH = 512
_RESERVED = {"id", "contents", "raw"}
_logger = logging.getLogger(__name__)


class NothingToIndex(InputError):
    """A collection without a document that a search could find."""


class ImpactIndexer:
    """Builds an impact index that stock Anserini and Pyserini can read, too. Use it as a context manager.

    When the context is left the index appears under its name, complete, or not at all. Until then an older index stays
    as it is. The impacts are written as term frequencies directly, where Anserini repeats tokens.

    Args:
        index: The folder of the index to make.
        encoder: The name of the model that makes the vectors, for the manifest.
        settings: What else the encoder depends on, for the manifest.
        impact_scale: Impact = round(weight * impact_scale), half to even, at least 0 and at most ``LARGEST_IMPACT``;
            what rounds to 0 is dropped. With 1 the weights must be whole numbers.
        signed: Take negative weights, each as an impact of the complement term ``¬t``.
        pair_terms: Write Combined Pseudo-Terms: the pairs ``a∩b`` of each document's so many heaviest terms, with
            impact √(dᵢ·dⱼ) (Krasakis et al., Eq. 7); 0 for none.
        threads: Threads that parse and index: by default as many as processors, at most four times as many.
        store_raw: Keep each document's source, which is shown with its hit.
        store_docvectors: Keep each document's terms and impacts as a term vector.
        filter_fields: Fields of each document's source that a search can filter by: texts, numbers, or lists of these.
        shard: The index is a shard of a larger one, which has the filter fields; the documents here may lack some.
        optimize: Merge the index into one segment.
        reorder: Merge it, put documents that share terms beside each other, and write the largest impacts of each block
            of them. Searches find the same, and the first hits faster.
        overwrite: Replace an index that is there already.
        resume: Continue a build that was killed, from its last :meth:`checkpoint`.
        replace: Replace an index that is there; continue a build that was killed if it had the same ``sources`` and
            options, else start again. Until then the index that is there stays.
        on_error: ``stop`` at a bad document, or ``skip`` it and list it in the index's ``SKIPPED_LOG``.
        sources: What the vectors are made of, in JSON; a build can only be continued with the same.

    Attributes:
        position: What the last checkpoint was given, also that of a build that is continued; None before any.
        skipped: The number of documents that were skipped.

    Raises:
        OutputError: The folder exists and ``overwrite`` is not set (on entry), or it cannot be written.
        InputError: Two documents have the same id, or no document has a term (on a clean exit).
        EncodingError: An encoder without a name, an impact scale or a number of pair terms out of range.

    Example:
        >>> with ImpactIndexer("indexes/mine", "splade", impact_scale=51.2) as indexer:  # doctest: +SKIP
        ...     indexer.add("d1", {"bird": 1.5, "fly": 0.25})
    """

    def __init__(
        self,
        index: str | Path,
        encoder: str,
        *,
        settings: Mapping[str, float | int | str] | None = None,
        impact_scale: float = 1.0,
        signed: bool = False,
        pair_terms: int = 0,
        threads: int | None = None,
        store_raw: bool = False,
        store_docvectors: bool = False,
        filter_fields: Sequence[str] = (),
        shard: bool = False,
        optimize: bool = False,
        reorder: bool = False,
        overwrite: bool = False,
        resume: bool = False,
        replace: bool = False,
        on_error: OnError = "stop",
        sources: Any = None,
    ) -> None:
        if not encoder.strip():
            raise EncodingError(f"the encoder must have a name, bm25 or that of the vectors' model, got {encoder!r}")
        if not 0 < impact_scale <= LARGEST_IMPACT:
            raise EncodingError(f"the impact scale must be above 0 and at most {LARGEST_IMPACT}, got {impact_scale:g}")
        if not (pair_terms == 0 or 2 <= pair_terms <= MOST_PAIR_TERMS):
            raise EncodingError(f"pair terms must be 0, or from 2 to {MOST_PAIR_TERMS}, got {pair_terms}")
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be 1 or more, got {threads}")
        if on_error not in get_args(OnError):
            raise ArgumentError(f"on_error must be one of {', '.join(get_args(OnError))}, got {on_error!r}")
        fields = checked_fields(filter_fields)
        if taken := _RESERVED.intersection(fields):
            raise ArgumentError(f"filter fields: {min(taken)!r} has another use in the index; rename the field")
        java_class("io.compneg.ImpactIndexer")  # if there is no Java, say so before anything is made
        self._target = Path(os.path.realpath(index))
        self._manifest = Manifest(encoder, dict(settings or {}), impact_scale, signed, pair_terms, filter_fields=fields)
        self._threads = min(threads or _PROCESSORS, 4 * _PROCESSORS)
        self._store: dict[str, Any] = {"store_raw": store_raw, "store_docvectors": store_docvectors, "shard": shard}
        self._sources = sources
        self._name = str(self._target)
        self._optimize, self._reorder = optimize or reorder, reorder
        self._modes = (overwrite, resume, replace)
        self._skip = on_error == "skip"
        self._added: list[tuple[str, str]] = []
        self._added_before = 0
        self.skipped = 0
        self.position: Any = None

    def __enter__(self) -> Self:
        """Makes the folder to build in, or continues an unfinished build."""
        names = ("impact_scale", "signed", "pair_terms", "filter_fields")
        written = {name: getattr(self._manifest, name) for name in names}
        self._plan = self._manifest.to_json() | self._store | {"sources": self._sources}
        with ExitStack() as stack:
            folder = new_index_folder(self._target, self._plan, *self._modes)
            self._folder = stack.enter_context(folder)
            self._writer = stack.enter_context(
                ImpactWriter(
                    self._folder,
                    threads=self._threads,
                    resume=any(self._modes[1:]),
                    name=str(self._target),
                    **written,
                    **self._store,
                )
            )
            log_bytes = self._restore()
            self._log = stack.enter_context((self._folder / SKIPPED_LOG).open("a", encoding="utf-8"))
            self._log.truncate(log_bytes)
            self._log.seek(log_bytes)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Completes the index and gives it its name; on an exception, leaves everything as it was."""
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
            raise InputError(f"{self._target}: document id {docid!r} is given twice")

    def _finish(self) -> None:
        self.drain()
        self._check_duplicates()
        self._check_content()
        if self._optimize:
            self._writer.optimize(self._reorder)
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
            raise NothingToIndex(
                f"{self._name}: nothing to index: {without if documents else 'no documents'}{self._why()}"
            )
        if not self._store["shard"] and (field := self._writer.missing_field()) is not None:
            raise InputError(f"{self._name}: no document has the filter field {field!r}; leave it out")

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
