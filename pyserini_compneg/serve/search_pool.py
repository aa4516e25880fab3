"""The threads that search, and their queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from starlette.exceptions import HTTPException

from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.support.errors import SearchCancelled
from pyserini_compneg.support.progress import add_time

T = TypeVar("T")


def queue_full() -> HTTPException:
    return HTTPException(429, "Too many searches are waiting; try again in a second", {"Retry-After": "1"})


class SearchPool:
    """Runs work in threads outside the event loop, and refuses work while the queue is full.

    Only the work runs in the threads; every method runs in the thread of the event loop. A search, including its wait,
    may take ``seconds``.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._threads, self._queue, self._seconds = threads, queue, seconds
        self._executor = ThreadPoolExecutor(threads, "search")
        self._taken: set[Cancellation] = set()

    @property
    def running(self) -> int:
        return min(len(self._taken), self._threads)

    @property
    def waiting(self) -> int:
        return len(self._taken) - self.running

    @property
    def is_full(self) -> bool:
        return len(self._taken) >= self._threads + self._queue

    async def run(self, work: Callable[[], T], abandoned: Callable[[], Awaitable[object]]) -> T:
        """Runs work in a thread, as part of the current request.

        ``abandoned`` returns when the work is no longer needed, for example because the client has disconnected. Then
        the work is cancelled. An error that ``abandoned`` raises replaces the ``SearchCancelled`` of the work.
        """
        if self.is_full:
            raise queue_full()
        cancellation = Cancellation(self._seconds)
        begun = time.perf_counter()

        def in_thread() -> T:
            add_time("queue", time.perf_counter() - begun)
            with cancellation.applied():
                return work()

        self._taken.add(cancellation)
        done = asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, in_thread)

        def end(ended: asyncio.Future[T]) -> None:
            self._taken.discard(cancellation)
            if not ended.cancelled():
                ended.exception()  # otherwise asyncio logs the error of a search whose request was cancelled

        done.add_done_callback(end)
        watcher = asyncio.ensure_future(abandoned())
        watcher.add_done_callback(lambda _: cancellation.cancel())  # the finally block also ends the watcher
        try:
            return await asyncio.shield(done)  # the place stays taken until the thread is free
        except SearchCancelled:
            if watcher.done() and not watcher.cancelled() and (reason := watcher.exception()):
                raise reason from None
            raise
        finally:
            watcher.cancel()

    def close(self) -> None:
        for cancellation in self._taken:
            cancellation.cancel()
        self._executor.shutdown(wait=True)
