"""Ends a search early: at its time limit, or when another thread cancels it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyserini_compneg.support.errors import SearchCancelled, SearchTimeout

_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


class Cancellation:
    """Ends the searches of a thread after some seconds, including waiting time, or when another thread cancels them.

    >>> with Cancellation(seconds=2).applied():
    ...     check_cancelled()  # a search checks ten times a second
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._cancelled = False

    def cancel(self) -> None:
        """Ends the searches. Any thread may call this method."""
        self._cancelled = True

    @contextmanager
    def applied(self) -> Iterator[None]:
        """In this context, the searches that this thread starts can be cancelled. None starts after the deadline."""
        self.check()
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def check(self) -> None:
        if self._cancelled:
            raise SearchCancelled("the search was cancelled")
        if time.monotonic() >= self._deadline:
            limit = f"the search took longer than the limit of {self.seconds:g} seconds"
            raise SearchTimeout(limit, remedy="ask for fewer hits, with fewer words, or later")

    def remaining(self) -> float:
        return self._deadline - time.monotonic()


def check_cancelled() -> None:
    """Raises SearchCancelled if the searches of this thread must end."""
    if (cancellation := _current.get()) is not None:
        cancellation.check()


def remaining_seconds() -> float:
    """The seconds that the searches of this thread may still take; infinity without a limit."""
    cancellation = _current.get()
    return math.inf if cancellation is None else cancellation.remaining()
