"""How long the stages of a request take, for its log line and its ``Server-Timing``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stages:
    """The milliseconds of each stage, in the order of the stages.

    >>> stages = Stages()
    >>> with stages.measured("search"):
    ...     pass
    >>> list(stages.milliseconds)
    ['search']
    """

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Adds the time until its end to a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - begun)

    def add(self, name: str, seconds: float) -> None:
        """Adds to a stage."""
        self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + 1000 * seconds, 3)

    def header(self) -> str:
        """The value of ``Server-Timing``."""
        return ", ".join(f"{name};dur={milliseconds}" for name, milliseconds in self.milliseconds.items())
