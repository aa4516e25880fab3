"""The threads that search, and the queue before them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.exceptions import HTTPException

from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.serve.stages import Stages
from pyserini_compneg.support.errors import SearchCancelled

T = TypeVar("T")


def queue_full() -> HTTPException:
    """What is raised where as many searches wait as may."""
    return HTTPException(429, "Too many searches are waiting; try again in a second", {"Retry-After": "1"})


class SearchPool:
    """Runs work in threads, off the event loop, and refuses it where too much is waiting.

    All its methods but the work itself run in the thread of the event loop.

    Args:
        threads: How much runs at once.
        queue: How much may wait.
        seconds: The limit for each, waiting included.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._threads, self._queue, self._seconds = threads, queue, seconds
        self._executor = ThreadPoolExecutor(threads, "search")
        self._taken: set[Cancellation] = set()

    @property
    def running(self) -> int:
        """How much runs now."""
        return min(len(self._taken), self._threads)

    @property
    def waiting(self) -> int:
        """How much waits now."""
        return len(self._taken) - self.running

    @property
    def is_full(self) -> bool:
        """Whether nothing more may wait."""
        return len(self._taken) >= self._threads + self._queue

    async def run(self, work: Callable[[], T], stages: Stages, abandoned: Callable[[], Awaitable[object]]) -> T:
        """Runs some work.

        Args:
            work: Done in another thread. What it searches can be cancelled.
            stages: Gets the stage ``queue``.
            abandoned: Returns when nobody waits for the work any more, for example because a client is gone.

        Raises:
            HTTPException: Too much is waiting.
            SearchTimeout: The time was over.
            SearchCancelled: Nobody waits any more, or the pool was closed. What ``abandoned`` raises takes its place.
        """
        if self.is_full:
            raise queue_full()
        cancellation = Cancellation(self._seconds)
        begun = time.perf_counter()

        def in_thread() -> T:
            stages.add("queue", time.perf_counter() - begun)
            with cancellation.applied():
                return work()

        self._taken.add(cancellation)
        done = asyncio.get_running_loop().run_in_executor(self._executor, in_thread)
        done.add_done_callback(lambda _: self._taken.discard(cancellation))
        watcher = asyncio.ensure_future(abandoned())
        watcher.add_done_callback(lambda _: cancellation.cancel())  # it ends when the work does, too
        try:
            return await asyncio.shield(done)  # a place is free when the thread is, not before
        except SearchCancelled:
            if watcher.done() and not watcher.cancelled() and (reason := watcher.exception()):
                raise reason from None
            raise
        finally:
            watcher.cancel()

    def close(self) -> None:
        """Cancels all that is running or waiting."""
        for cancellation in self._taken:
            cancellation.cancel()
        self._executor.shutdown(wait=True)
