"""Who does the parts of long work: this process, one after the other, unless a cluster does them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Done = TypeVar("Done")


class Runner(Protocol):
    """Runs the parts of some work; ``cluster`` has one that runs them on many machines."""

    def __call__(self, work: Callable[..., Done], parts: Sequence[Sequence[Any]], doing: str) -> list[Done]:
        """Runs the parts, in any order, and those again that were interrupted.

        Args:
            work: A function of a module. What it did before it was interrupted it finds when it is called again.
            parts: Its arguments for each part.
            doing: What it does, for the progress, such as ``indexing``.

        Returns:
            What it returned for each part, in their order.

        Raises:
            CompNegError: Of the first part that failed; no other goes on then.
        """


def in_turn(work: Callable[..., Done], parts: Sequence[Sequence[Any]], doing: str) -> list[Done]:
    """Runs the parts here, one after the other. See :class:`Runner`."""
    return [work(*part) for part in parts]
