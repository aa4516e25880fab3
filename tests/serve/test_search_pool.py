import asyncio
import threading

import pytest
from starlette.exceptions import HTTPException

from pyserini_compneg.lucene.cancellation import Cancellation, check_cancelled
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.support.errors import SearchCancelled, SearchTimeout


async def never():
    await asyncio.Event().wait()


def search_for_ever():
    """As the loop of a search does, which asks between two slices."""
    while True:
        check_cancelled()
        threading.Event().wait(0.005)


def run_in(pool, *works, abandoned=never):

    async def main():
        try:
            runs = (pool.run(work, abandoned) for work in works)
            return await asyncio.gather(*runs, return_exceptions=True)
        finally:
            await asyncio.to_thread(pool.close)

    return asyncio.run(main())


def test_results_and_errors_come_back_in_their_places():
    *results, error = run_in(SearchPool(2, 8, 10), lambda: 1, lambda: 2, lambda: 1 // 0)
    assert results == [1, 2]
    assert isinstance(error, ZeroDivisionError)


def test_beyond_the_queue_is_refused_and_a_place_comes_free():
    pool = SearchPool(1, 2, 10)
    begun, go = threading.Event(), threading.Event()

    def wait():
        begun.set()
        return go.wait(10)

    async def main():
        runs = [asyncio.create_task(pool.run(wait, never)) for _ in range(3)]
        await asyncio.to_thread(begun.wait, 10)
        assert (pool.running, pool.waiting) == (1, 2)
        with pytest.raises(HTTPException, match="^429: Too many searches are waiting"):
            await pool.run(wait, never)
        go.set()
        assert await asyncio.gather(*runs) == [True] * 3
        assert (pool.running, pool.waiting) == (0, 0)
        assert await pool.run(lambda: "again", never) == "again"

    asyncio.run(main())
    pool.close()


def test_a_search_ends_at_its_limit_and_one_that_waited_too_long_never_begins():
    begun = []

    def search_and_stop_late():
        try:
            search_for_ever()
        finally:
            threading.Event().wait(1)  # the other one's time is over, too

    first, second = run_in(SearchPool(1, 1, 0.05), search_and_stop_late, lambda: begun.append(1))
    assert isinstance(first, SearchTimeout)
    said = "the search took longer than the limit of 0.05 seconds; ask for fewer hits, with fewer words, or later"
    assert str(first) == said
    assert isinstance(second, SearchTimeout)
    assert begun == []


def test_a_search_ends_when_its_client_goes():
    async def gone():
        await asyncio.sleep(0.02)

    (error,) = run_in(SearchPool(1, 1, 60), search_for_ever, abandoned=gone)
    assert isinstance(error, SearchCancelled)
    assert not isinstance(error, SearchTimeout)


@pytest.mark.parametrize(("how", "error"), [("task", asyncio.CancelledError), ("pool", SearchCancelled)])
def test_a_search_ends_when_its_task_is_cancelled_or_its_pool_is_closed(how, error):
    pool = SearchPool(1, 1, 60)

    async def main():
        task = asyncio.create_task(pool.run(search_for_ever, never))
        await asyncio.sleep(0.02)
        if how == "task":
            task.cancel()
        else:
            await asyncio.to_thread(pool.close)
        with pytest.raises(error):
            await task
        while pool.running:
            await asyncio.sleep(0.005)

    asyncio.run(main())
    pool.close()


def test_a_cancellation_holds_for_its_thread_alone():
    cancellation = Cancellation(60)
    with cancellation.applied():
        cancellation.cancel()
        with pytest.raises(SearchCancelled, match="^the search was cancelled$"):
            check_cancelled()
        thread = threading.Thread(target=check_cancelled)
        thread.start()
        thread.join()
    check_cancelled()
