"""Ends a search before it is done: when its time is over, or when another thread says so."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyserini_compneg.support.errors import SearchCancelled, SearchTimeout

_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


class Cancellation:
    """What can end the searches of a thread. The time runs from here on.

    Args:
        seconds: How long the searches may take together, waiting included.

    Example:
        >>> with Cancellation(seconds=2).applied():
        ...     check_cancelled()  # a search does so ten times a second
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._cancelled = False

    def cancel(self) -> None:
        """Ends the searches; any thread may call it."""
        self._cancelled = True

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Until its end, the searches that this thread begins can be cancelled; none begins after the deadline."""
        self.check()
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def check(self) -> None:
        """Does nothing while the searches may go on.

        Raises:
            SearchCancelled: They may not.
        """
        if self._cancelled:
            raise SearchCancelled("the search was cancelled")
        if time.monotonic() >= self._deadline:
            limit = f"the search took longer than the limit of {self.seconds:g} seconds"
            raise SearchTimeout(f"{limit}; ask for fewer hits, with fewer words, or later")

    def remaining(self) -> float:
        """The seconds that are left."""
        return self._deadline - time.monotonic()


def check_cancelled() -> None:
    """Does nothing while the searches of this thread may go on.

    Raises:
        SearchCancelled: They may not.
    """
    if (cancellation := _current.get()) is not None:
        cancellation.check()


def remaining_seconds() -> float:
    """How long the searches of this thread may still take; infinity where nothing says so."""
    cancellation = _current.get()
    return math.inf if cancellation is None else cancellation.remaining()
