"""What all interfaces of the server stand on: the indexes, the threads that search, and what is said of a query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from pyserini_compneg.serve.answers import Answer
from pyserini_compneg.serve.limits import Limits
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.support.errors import CompNegError, SearchCancelled, SearchTimeout

CLIENT_GONE = 499  # for the log, as other servers have it; nobody is there to read it

_RELOAD_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class Backend:
    """The indexes, and the threads that search them.

    Args:
        indexes: The indexes by their names.
        pool: The threads.
        limits: What a search may cost.
        warned: Told the name of an index of which a search has warned, or in which it has failed.
    """

    def __init__(
        self,
        indexes: Mapping[str, ServedIndex],
        pool: SearchPool,
        limits: Limits | None = None,
        warned: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.indexes = indexes
        self.pool = pool
        self.limits = limits or Limits()
        self._warned = warned

    def index(self, name: str) -> ServedIndex:
        """The index of that name.

        Raises:
            HTTPException: None has it.
        """
        if name not in self.indexes:
            raise HTTPException(400, f"Unable to open index: {name[:80]}; there are {', '.join(self.indexes)}")
        return self.indexes[name]

    def documents(self) -> dict[str, int]:
        """How many documents each index has."""
        return {name: index.documents for name, index in self.indexes.items()}

    def health(self) -> Answer:
        """Whether all indexes are whole, their sizes, and what they can be filtered by."""
        found = {name: index.degraded for name, index in self.indexes.items()}
        degraded = {name: what for name, what in found.items() if what}
        fields = {name: index.filter_fields for name, index in self.indexes.items()}
        status = "degraded" if degraded else "ok"
        return {"status": status, "indexes": self.documents(), "filter_fields": fields, "degraded": degraded}

    def public(self, text: str) -> str:
        """A message as clients are told it: with the names of indexes in place of their paths."""
        return self._replaced(text)[0]

    def _replaced(self, text: str) -> tuple[str, list[str]]:
        """The message, and the indexes whose paths it had."""
        folders = [(folder, name) for name, index in self.indexes.items() for folder in index.folders]
        named = []
        for folder, name in sorted(folders, key=lambda one: -len(one[0])):  # one may lie in another
            if folder in text:
                text = text.replace(folder, name)
                named.append(name)
        return text, named

    def with_notes(self, work: Callable[[], Answer]) -> Answer:
        """What some work answers, with the warnings that this thread gave meanwhile as its ``notes``."""
        notes = _Notes(self)
        token = _notes.set(notes)
        try:
            answer = work()
        finally:
            _notes.reset(token)
        return {**answer, "notes": notes.texts} if notes.texts else answer

    def noted(self, text: str) -> tuple[str, bool]:
        """A warning as clients are told it, and whether it is of a query alone, so that the log does not need it."""
        told, named = self._replaced(text)
        for name in named:
            self._warned(name)
        return told, not named

    def refusal(self, error: CompNegError) -> HTTPException:
        """The answer to what cannot be done.

        What is wrong with a query is the client's to know; what is wrong with an index, and its path, is not.
        """
        match error:
            case SearchTimeout():
                return HTTPException(504, str(error))
            case SearchCancelled():
                return HTTPException(CLIENT_GONE, str(error))
            case CompNegError(exit_code=1):
                self.noted(str(error))
                _logger.error("%s", error)
                return unexpected()
        return HTTPException(400, self.public(str(error)))

    async def reload_for_ever(self, reloaded: Callable[[str, int], object]) -> None:
        """Turns to indexes that take the place of those that are open. What cannot be opened is told once.

        Args:
            reloaded: Told the name of such an index, and how many documents it has.
        """
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(_RELOAD_SECONDS)
            for name, index in self.indexes.items():
                try:
                    if await asyncio.to_thread(index.reload):
                        reloaded(name, index.documents)
                        _logger.info("index %s: reloaded, %s documents", name, f"{index.documents:,}")
                    told.pop(name, None)
                except Exception as error:  # whatever it is, the server goes on, and looks again
                    if told.get(name) != str(error):
                        trace = None if isinstance(error, CompNegError) else error
                        _logger.warning("index %s: the one that is open stays: %s", name, error, exc_info=trace)
                    told[name] = str(error)


def unexpected() -> HTTPException:
    """The answer where the server fails."""
    return HTTPException(500, "Internal server error")


@dataclass
class _Notes:
    """The warnings for an answer."""

    backend: Backend
    texts: list[str] = field(default_factory=list)


_notes: ContextVar[_Notes | None] = ContextVar("notes", default=None)


class _Noting(logging.Handler):
    """Takes a record that belongs to an answer, and marks it, so that no other handler prints it.

    What warns of an index is for the answer and for the log.
    """

    def emit(self, record: logging.LogRecord) -> None:
        notes = _notes.get()
        if notes is not None and record.levelno <= logging.WARNING:
            text, record.is_noted = notes.backend.noted(record.getMessage())
            notes.texts.append(text)


def gather_notes() -> None:
    """From now on warnings are gathered; what handlers the root logger has now will print no others."""
    logger = logging.getLogger("pyserini_compneg")
    if not any(isinstance(handler, _Noting) for handler in logger.handlers):
        logger.addHandler(_Noting())
        for handler in logging.getLogger().handlers:
            handler.addFilter(lambda record: not getattr(record, "is_noted", False))
