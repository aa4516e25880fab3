"""Progress of long work, warnings that are collected during it, times of its stages, and runners of its parts.

Progress is a bar on a terminal, lines with rate and duration in a log, or numbers for another process.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol, Self, TypeAlias, TypeVar

SECONDS = 30.0
"""The seconds between two lines."""

DOCUMENTS = " docs"
"""The unit of documents. Other processes get only the number of documents."""

_REPORT_SECONDS = 1.0
_report: ContextVar[Callable[[int], None] | None] = ContextVar("report", default=None)
_logger = logging.getLogger(__name__)
_Kinds: TypeAlias = "dict[tuple[str, str, str], tuple[dict[str, str], set[str]]]"
"""For each ``one``, ``many`` and ``said`` of :func:`warn_of`: the ``found`` and the ``among`` of all its calls."""

_gathered: ContextVar[_Kinds | None] = ContextVar("gathered", default=None)
_tokens: ContextVar[Callable[[int], None] | None] = ContextVar("tokens", default=None)

said_in_request: ContextVar[set[str]] = ContextVar("said_in_request")
"""What :func:`warn_once` has said during a request of a server."""

_said_in_process = set[str]()

Done = TypeVar("Done")


@contextmanager
def reported(report: Callable[[int], None]) -> Iterator[None]:
    """In this context, the progress of documents in this thread is reported, about once a second, instead of shown."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def progress(
    iterable: Iterable[Any] | None,
    total: int | None,
    unit: str,
    description: str,
    done: int = 0,
    summary: bool = False,
    even: bool = True,
) -> Any:
    """A tqdm bar if standard error is a terminal, otherwise lines of this module's logger, one every 30 seconds.

    Without ``iterable``, the caller moves the bar by its ``update(n)``. Work that an earlier run has ``done`` is not
    counted in the rate. With ``summary``, the log gets a last line even if the work is short. If items are not
    ``even``, because the first one has most of the work, the bar does not estimate the remaining time.
    """
    if unit == DOCUMENTS and (report := _report.get()) is not None:
        return _Reported(report, iterable, total, unit, description, done)
    if sys.stderr is None or not sys.stderr.isatty():
        lines = _Lines(iterable, total, unit, description, done)
        lines.is_due_at_end = summary
        return lines
    from tqdm import tqdm  # imported only if a bar is shown

    return tqdm(
        iterable,
        initial=done,
        total=total,
        unit=unit,
        desc=description,
        dynamic_ncols=True,
        unit_scale=unit == "B",
        bar_format=None if even else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]",
    )


@contextmanager
def token_rate(bar: Any) -> Iterator[None]:
    """In this context, a bar also shows how many tokens of :func:`count_tokens` a model reads in a second."""
    start = said = time.monotonic()
    tokens = 0

    def add(number: int) -> None:
        nonlocal tokens, said
        tokens, now = tokens + number, time.monotonic()
        is_due = now - said >= _REPORT_SECONDS
        bar.set_postfix_str(f"{tokens / max(now - start, 1e-3):,.0f} tokens/s", is_due)
        said = now if is_due else said

    token = _tokens.set(add)
    try:
        yield
    finally:
        _tokens.reset(token)


def count_tokens(number: int) -> None:
    """Tells the bar of this context, if there is one, that a model has read so many more tokens."""
    if add := _tokens.get():
        add(number)


class _Lines:
    """Progress as lines of a log. Each record has the values of its line as ``record.progress``."""

    def __init__(self, items: Iterable[Any] | None, total: int | None, unit: str, work: str, done: int) -> None:
        self.n = self.initial = done
        self._items, self._total, self._unit, self._work = items, total, unit, work
        self._start = self._said = time.monotonic()
        self._seconds = SECONDS
        self._more = ""
        self._line: tuple[int, str] | None = None
        self.is_due_at_end = False

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self._items or ():
                yield item
                self.update(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    def update(self, n: int = 1) -> None:
        self.n += n
        if time.monotonic() - self._said >= self._seconds:
            self._said = time.monotonic()
            self.is_due_at_end = True
            self._say()

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self._more = f", {text}"
        if refresh:
            self.update(0)

    def close(self) -> None:
        if self.is_due_at_end and self._line != (self.n, self._more):
            self._say()
        self.is_due_at_end = False

    def _say(self) -> None:
        self._line = self.n, self._more
        seconds = time.monotonic() - self._start
        rate = (self.n - self.initial) / max(seconds, 1e-3)
        scale, unit = (1e6, " MB") if self._unit == "B" else (1, self._unit)
        count = f"{self.n / scale:,.0f}" + (f" of {self._total / scale:,.0f}" if self._total else "")
        before = f" ({self.initial / scale:,.0f} by an earlier run)" if self.initial else ""
        values = {"work": self._work, "done": self.n, "total": self._total, "unit": self._unit.strip()}
        values |= {"done_before": self.initial, "seconds": round(seconds, 3), "per_second": round(rate, 3)}
        _logger.info(
            "%s: %s%s%s in %s, %s a second%s",
            self._work,
            count,
            unit,
            before,
            timedelta(seconds=round(seconds)),
            f"{rate / scale:,.{0 if rate / scale >= 10 else 1}f}",
            self._more,
            extra={"progress": values},
        )


class _Reported(_Lines):
    """Progress that is reported to another process."""

    def __init__(self, report: Callable[[int], None], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._report = report
        self._seconds = _REPORT_SECONDS
        self.is_due_at_end = True

    def _say(self) -> None:
        self._report(self.n)


@contextmanager
def gathered_warnings(where: str = "") -> Iterator[None]:
    """Collects the warnings of :func:`warn_of`. Equal warnings are logged once, at the end of the outermost block.

    The line begins with ``where``, and has the number of affected things and the name of the first.
    """
    if _gathered.get() is not None:
        yield
        return
    kinds: _Kinds = {}
    token = _gathered.set(kinds)
    try:
        yield
    finally:
        _gathered.reset(token)
        for (one, many, said), (found, among) in kinds.items():
            if found:
                number = f"{len(found)} of {len(among)} {many}, such as" if len(found) > 1 else one
                _logger.warning("%s%s %s: %s", where and f"{where}: ", number, next(iter(found.values())), said)


def warn_of(one: str, many: str, said: str, found: Mapping[str, str], among: Collection[str]) -> None:
    """Warns that ``said`` holds for the things in ``found``, out of the things in ``among``.

    ``found`` maps things to their names in the warning. ``one`` and ``many`` name the kind of things. The warning is
    logged at the end of :func:`gathered_warnings`.
    """
    with gathered_warnings():
        kinds = _gathered.get()
        assert kinds is not None
        found_before, among_before = kinds.setdefault((one, many, said), ({}, set()))
        found_before |= {thing: name for thing, name in found.items() if thing not in found_before}
        among_before |= set(among)


def warn_once(said: str) -> None:
    """Warns, unless the same was said in this request of a server or, outside requests, in this process."""
    before = said_in_request.get(_said_in_process)
    if said not in before:
        before.add(said)
        _logger.warning("%s", said)


stages: ContextVar[dict[str, float] | None] = ContextVar("stages", default=None)
"""The milliseconds of each stage of the current request, if someone wants to know them."""


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Adds the duration of the block to a stage of the current request."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        add_time(name, time.perf_counter() - begun)


def add_time(name: str, seconds: float) -> None:
    """Adds a duration to a stage of the current request."""
    if (known := stages.get()) is not None:
        known[name] = round(known.get(name, 0.0) + 1000 * seconds, 3)


class Runner(Protocol):
    """Runs the parts of a long job. ``cluster`` has a runner that uses many machines."""

    def __call__(self, work: Callable[..., Done], parts: Sequence[Sequence[Any]], doing: str) -> list[Done]:
        """Calls a function of a module for each part. Returns the results in the order of the parts.

        Parts run in any order. An interrupted part runs again, and must continue from its own checkpoint. The first
        part that fails ends the others.
        """


def in_turn(work: Callable[..., Done], parts: Sequence[Sequence[Any]], doing: str) -> list[Done]:
    """The :class:`Runner` of one process, which runs the parts one after another."""
    return [work(*part) for part in parts]
