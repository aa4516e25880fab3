"""Keeps copies of indexes of another server: asks it each second, copies what is new, and opens the copy."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyserini_compneg.index.copying import IndexCopy
from pyserini_compneg.lucene import is_index
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.settings import Follows, ServedIndexSettings
from pyserini_compneg.support.errors import CompNegError

_SECONDS = 1.0

_MOST_SECONDS = 60.0
"""The longest time between two tries to copy what cannot be copied."""

_SECONDS_TO_END = 2.0

_logger = logging.getLogger(__name__)


def first_copies(indexes: Mapping[str, ServedIndexSettings]) -> None:
    """Makes the copies that are not there yet. Raises if a writer is not reached, or refuses."""
    for name, index in indexes.items():
        if index.follows:
            copy = IndexCopy(index.follows.url, index.follows.key, index.path)
            copy.check()
            if not is_index(Path(index.path)) and (listed := copy.ask()):
                generation = copy.take(listed, shows=True)
                _logger.info("index %s: %s", name, _copied(copy, generation, 0))


@contextmanager
def following(backend: Backend) -> Iterator[None]:
    """In this context, indexes follow their writers, each in a thread of its own, as a download may take long."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=_follow, args=(backend, name, index.follows, stop), name=f"follow {name}", daemon=True)
        for name, index in backend.indexes.items()
        if index.follows
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        until = time.monotonic() + _SECONDS_TO_END
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


def _follow(backend: Backend, name: str, writer: Follows, stop: threading.Event) -> None:
    """Follows until the server ends. A reason why the copy is not equal is logged once, whatever its numbers are."""
    index = backend.indexes[name]
    copy = IndexCopy(writer.url, writer.key, index.path, stop)
    there, failures = index.generation, 0  # the generation in the folder, and how often it was not renewed
    told = ""
    while not stop.is_set():
        try:
            if listed := copy.ask(there):
                index.compared(False)
                failures += 1  # unless it succeeds
                before = copy.received
                there = copy.take(listed)
                _logger.info("index %s: %s", name, _copied(copy, there, before))
            if index.reload():
                backend.metrics.reloads.labels(name).inc()
            index.compared(index.generation == there)
            there, failures = index.generation, 0  # somebody may have put another folder in its place
            if told:
                _logger.info("index %s: follows again", name)
            told = ""
        except Exception as error:  # after any error, the server continues and tries again
            index.compared(False)
            reason = re.sub(r"\d+", "", str(error))
            if reason != told and not stop.is_set():
                told = reason
                trace = None if isinstance(error, CompNegError) else error
                _logger.warning("index %s: the copy that is there stays: %s", name, error, exc_info=trace)
        stop.wait(min(_SECONDS * 2 ** min(max(0, failures - 1), 10), _MOST_SECONDS))


def _copied(copy: IndexCopy, generation: str, before: int) -> str:
    return f"copied generation {generation} of {copy.url}, {copy.received - before:,} bytes"
