"""What all interfaces of the server stand on: the indexes, the threads that search, and what is said of a query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from starlette.exceptions import HTTPException

from pyserini_compneg.errors import CompNegError, SearchCancelled, SearchTimeout
from pyserini_compneg.serve.answers import Answer
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex

CLIENT_GONE = 499  # for the log, as other servers have it; nobody is there to read it

_RELOAD_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class Backend:
    """The indexes, and the threads that search them.

    Args:
        indexes: The indexes by their names.
        pool: The threads.
    """

    def __init__(self, indexes: Mapping[str, ServedIndex], pool: SearchPool) -> None:
        self.indexes = indexes
        self.pool = pool

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


def refusal(error: CompNegError) -> HTTPException:
    """The answer to what cannot be done.

    What is wrong with a query is the client's to know; what is wrong with an index, and its path, is not.
    """
    match error:
        case SearchTimeout():
            return HTTPException(504, str(error))
        case SearchCancelled():
            return HTTPException(CLIENT_GONE, str(error))
        case CompNegError(exit_code=1):
            _logger.error("%s", error)
            return unexpected()
    return HTTPException(400, str(error))


def unexpected() -> HTTPException:
    """The answer where the server fails."""
    return HTTPException(500, "Internal server error")


_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


def with_notes(work: Callable[[], Answer]) -> Answer:
    """What some work answers, with the warnings that this thread gave meanwhile as its ``notes``."""
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        answer = work()
    finally:
        _notes.reset(token)
    return {**answer, "notes": notes} if notes else answer


class _Noting(logging.Handler):
    """Takes a record that belongs to an answer, and marks it, so that no other handler prints it."""

    def emit(self, record: logging.LogRecord) -> None:
        notes = _notes.get()
        if notes is not None and record.levelno <= logging.WARNING:
            notes.append(record.getMessage())
            record.is_noted = True


def gather_notes() -> None:
    """From now on warnings are gathered; what handlers the root logger has now will print no others."""
    logger = logging.getLogger("pyserini_compneg")
    if not any(isinstance(handler, _Noting) for handler in logger.handlers):
        logger.addHandler(_Noting())
        for handler in logging.getLogger().handlers:
            handler.addFilter(lambda record: not getattr(record, "is_noted", False))
