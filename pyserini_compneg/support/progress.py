"""Progress of long work: a bar on a terminal, lines with rate and duration in a log, or numbers for another process."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Self

SECONDS = 30.0
"""The time between two lines."""

DOCUMENTS = " docs"
"""The unit of documents. Only their number is of use to another process."""

_REPORT_SECONDS = 1.0
_report: ContextVar[Callable[[int], None] | None] = ContextVar("report", default=None)
_logger = logging.getLogger(__name__)


@contextmanager
def reported(report: Callable[[int], None]) -> Iterator[None]:
    """Until its end, the progress of documents in this thread is not shown but reported, about once a second.

    Args:
        report: Takes the number of documents that are done.
    """
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
) -> Any:
    """A tqdm bar if standard error is a terminal, else lines of the logger of this module, one every 30 seconds.

    Args:
        iterable: The items to go through; ``None`` for a bar that is moved by its ``update(n)``.
        total: The number of items, ``None`` when it is not known.
        unit: What one item is, for example ``" docs"``; ``"B"`` is scaled to larger ones.
        description: The text before the bar.
        done: The number of items that an earlier run has done; they do not count in the rate.
        summary: Whether a log gets a last line even if the work is short.

    Returns:
        The bar: an iterable of the items, and a context manager that closes itself.
    """
    if unit == DOCUMENTS and (report := _report.get()) is not None:
        return _Reported(iterable, total, unit, description, done, report)
    if sys.stderr is None or not sys.stderr.isatty():
        return _Lines(iterable, total, unit, description, done, summary)
    from tqdm import tqdm  # a command that shows no bar does not pay for the import

    return tqdm(
        iterable, initial=done, total=total, unit=unit, desc=description, dynamic_ncols=True, unit_scale=unit == "B"
    )


class _Lines:
    """What a log gets instead of a bar. Each record has the values of its line as ``record.progress``."""

    def __init__(
        self, iterable: Iterable[Any] | None, total: int | None, unit: str, description: str, done: int, summary: bool
    ) -> None:
        self.n = self.initial = done
        self._items = iterable
        self._total, self._unit, self._description = total, unit, description
        self._summary = summary
        self._start = self._said = time.monotonic()

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
        """Counts items that are done."""
        self.n += n
        if time.monotonic() - self._said >= self._seconds():
            self._said = time.monotonic()
            self._summary = True
            self._say()

    def _seconds(self) -> float:
        return SECONDS

    def close(self) -> None:
        """Says how it ended, if it was long."""
        if self._summary:
            self._say()
            self._summary = False

    def _say(self) -> None:
        seconds = time.monotonic() - self._start
        rate = (self.n - self.initial) / max(seconds, 1e-3)
        scale, unit = (1e6, " MB") if self._unit == "B" else (1, self._unit)
        count = f"{self.n / scale:,.0f}" + (f" of {self._total / scale:,.0f}" if self._total else "")
        before = f" ({self.initial / scale:,.0f} by an earlier run)" if self.initial else ""
        values = {"work": self._description, "done": self.n, "total": self._total, "unit": self._unit.strip()}
        values |= {"done_before": self.initial, "seconds": round(seconds, 3), "per_second": round(rate, 3)}
        _logger.info(
            "%s: %s%s%s in %s, %s a second",
            self._description,
            count,
            unit,
            before,
            timedelta(seconds=round(seconds)),
            f"{rate / scale:,.{0 if rate / scale >= 10 else 1}f}",
            extra={"progress": values},
        )


class _Reported(_Lines):
    """What another process gets."""

    def __init__(
        self,
        iterable: Iterable[Any] | None,
        total: int | None,
        unit: str,
        description: str,
        done: int,
        report: Callable[[int], None],
    ) -> None:
        super().__init__(iterable, total, unit, description, done, summary=True)
        self._report = report

    def _seconds(self) -> float:
        return _REPORT_SECONDS

    def _say(self) -> None:
        self._report(self.n)
