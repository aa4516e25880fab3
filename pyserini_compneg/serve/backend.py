"""State shared by all interfaces of the server: indexes, search threads, and messages for clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from pyserini_compneg.lucene.versions import describe_build
from pyserini_compneg.serve.metrics import Metrics
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.replies import API, FileReply, FilesReply, WriteReply
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import Limits
from pyserini_compneg.support.errors import BusyError, CompNegError, SearchCancelled, SearchTimeout
from pyserini_compneg.support.progress import reported, said_in_request
from pyserini_compneg.support.settings_files import first_fault
from pyserini_compneg.support.terminal import shown

CLIENT_GONE = 499  # only for the log, as in other servers

_RELOAD_SECONDS = 0.5

_logger = logging.getLogger(__name__)
_note: ContextVar[Callable[[str], bool] | None] = ContextVar("note", default=None)
"""Adds a warning to the answer that this thread makes. Returns whether the log can omit the warning."""


class Backend:
    """The open indexes by name, the pool that searches them, and metrics.

    While a backend exists, warnings of the package become notes of answers.
    """

    def __init__(self, indexes: Mapping[str, ServedIndex], limits: Limits, options: ServeOptions) -> None:
        self.indexes, self.limits = indexes, limits
        self.pool = SearchPool(options.threads, options.queue, options.timeout)
        self.metrics = Metrics(indexes, self.pool)
        self._build = describe_build()  # now, since an upgrade may replace the files of a running server
        _gather_notes()

    def index(self, name: str | None) -> ServedIndex:
        """The index with this name. None means the only index."""
        there = f"there are {', '.join(self.indexes)}"
        if name is None and len(self.indexes) > 1:
            raise HTTPException(400, f"Name an index; {there}")
        if name is not None and name not in self.indexes:
            raise HTTPException(400, f"Unable to open index: {name[:80]}; {there}")
        return next(iter(self.indexes.values())) if name is None else self.indexes[name]

    def switch(self, name: str, folder: str) -> dict[str, Any]:
        """Opens another folder under the name of an index, and says what is searched then."""
        index = self._changed_here(name)
        index.switch(folder)
        self.metrics.reloads.labels(name).inc()
        _logger.info("index %s: switched to %s, %s documents", name, folder, f"{index.documents:,}")
        return {"api": API, "index": name, "generation": index.generation, "documents": index.documents}

    def _changed_here(self, name: str) -> ServedIndex:
        """The index with this name, unless it follows another server."""
        index = self.index(name)
        if index.follows:
            raise HTTPException(409, f"{name} is a copy, and is changed where it is written: {index.follows.url}")
        return index

    def files(self, name: str) -> FilesReply:
        """The files of an index, which a server that follows this one copies."""
        generation, files = self.index(name).files()
        listed: list[FileReply] = [{"path": one.path, "bytes": one.bytes, "checksum": one.checksum} for one in files]
        return {"api": API, "index": name, "generation": generation, "files": listed}

    def file(self, name: str, path: str) -> Path:
        """The place of a file of an index."""
        place = self.index(name).file(path)
        if place is None or not place.is_file():
            raise HTTPException(404, f"{name} has no file {shown(path)}")
        return place

    def update(self, name: str, documents: bytes | None = None, delete: Sequence[str] | None = None) -> WriteReply:
        """Updates an index as the command ``update`` does. Searches find the changes when this returns."""
        index = self._changed_here(name)
        with reported(lambda _: None):  # no bar of each request in the log
            done = index.update(documents, delete)
        try:
            if index.reload():
                self.metrics.reloads.labels(name).inc()
        except CompNegError as error:  # the documents are written, and this is tried again
            _logger.warning("index %s: is updated, but cannot be opened yet: %s", name, error)
        _logger.info("index %s: %d documents written, %d deleted", name, done.inserted + done.replaced, done.deleted)
        return {
            "api": API,
            "index": name,
            "generation": index.generation,
            "documents": index.documents,
            "inserted": done.inserted,
            "replaced": done.replaced,
            "unchanged": done.unchanged,
            "deleted": done.deleted,
            "not_found": done.not_found,
        }

    def health(self) -> dict[str, Any]:
        """Whether all indexes are complete, what they hold, and the build that searches them."""
        degraded = {name: what for name, index in self.indexes.items() if (what := index.degraded)}
        return {
            "status": "degraded" if degraded else "ok",
            "indexes": {name: index.documents for name, index in self.indexes.items()},
            "filter_fields": {name: index.filter_fields for name, index in self.indexes.items()},
            "languages": {name: index.language for name, index in self.indexes.items()},
            "generations": {name: index.generation for name, index in self.indexes.items()},
            "versions": {name: version for name, index in self.indexes.items() if (version := index.version)},
            "follows": {
                name: {"generation": index.generation, "behind_seconds": round(index.behind_seconds, 1)}
                for name, index in self.indexes.items()
                if index.follows
            },
            "degraded": degraded,
            "build": self._build,
        }

    def with_notes(self, work: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Runs the work and adds the warnings of this thread to its answer as ``notes``."""
        notes: list[str] = []

        def note(text: str) -> bool:
            public, named = self._told(text)
            notes.append(public)
            self._count(named)
            return not named

        tokens = _note.set(note), said_in_request.set(set())
        try:
            answer = work()
        finally:
            _note.reset(tokens[0])
            said_in_request.reset(tokens[1])
        return {**answer, "notes": notes} if notes else answer

    def _told(self, text: str) -> tuple[str, set[str]]:
        """A message with the names of indexes in place of their paths, and the names of these indexes."""
        folders = [(folder, name) for name, index in self.indexes.items() for folder in index.folders]
        named = set[str]()
        for folder, name in sorted(folders, key=lambda one: -len(one[0])):  # a folder may be inside another
            if folder in text:
                text = text.replace(folder, name)
                named.add(name)
        return text, named

    def _count(self, named: Iterable[str]) -> None:
        for name in named:
            self.metrics.warnings.labels(name).inc()

    def refusal(self, error: Exception) -> HTTPException:
        """The answer to an error. Clients get the faults of requests, but not the faults of indexes."""
        match error:
            case HTTPException():
                return error
            case ValidationError():
                return HTTPException(400, first_fault(error.errors(include_url=False)))
            case SearchTimeout(where=where) if where:  # a node did not answer, which is nothing for clients
                _logger.warning("%s", error)
                return HTTPException(504, "The search took too long")
            case SearchTimeout():
                return HTTPException(504, str(error))
            case SearchCancelled() | ClientDisconnect():
                return HTTPException(CLIENT_GONE, str(error) or "the client is gone")
            case BusyError():
                return HTTPException(409, self._told(str(error))[0])
            case CompNegError(exit_code=1):
                self._count(self._told(str(error))[1])
                _logger.error("%s", error)
            case CompNegError():
                return HTTPException(400, self._told(str(error))[0])
        return HTTPException(500, "Internal server error")

    async def reload_for_ever(self) -> None:
        """Opens indexes that replace the open ones, repeatedly. An index that cannot be opened is reported once."""
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(_RELOAD_SECONDS)
            for name, index in self.indexes.items():
                try:
                    if await asyncio.to_thread(index.reload):
                        self.metrics.reloads.labels(name).inc()
                        _logger.info("index %s: reloaded, %s documents", name, f"{index.documents:,}")
                    told.pop(name, None)
                except Exception as error:  # after any error, the server continues and tries again
                    if told.get(name) != str(error):
                        trace = None if isinstance(error, CompNegError) else error
                        _logger.warning("index %s: the one that is open stays: %s", name, error, exc_info=trace)
                    told[name] = str(error)


class _Noting(logging.Handler):
    """Adds a warning to the answer, and marks the record if no other handler needs to print it."""

    def emit(self, record: logging.LogRecord) -> None:
        note = _note.get()
        if note is not None and record.levelno == logging.WARNING:
            record.is_noted = note(record.getMessage())


def _gather_notes() -> None:
    logger = logging.getLogger("pyserini_compneg")
    if not any(isinstance(handler, _Noting) for handler in logger.handlers):
        logger.addHandler(_Noting())
        for handler in logging.getLogger().handlers:
            handler.addFilter(lambda record: not getattr(record, "is_noted", False))
