"""Warnings that hold for many things of a kind: one line for all of them, with their number and the first of them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

_logger = logging.getLogger(__name__)
_Kinds: TypeAlias = "dict[tuple[str, str, str], tuple[dict[str, str], set[str]]]"
_gathered: ContextVar[_Kinds | None] = ContextVar("gathered", default=None)


@contextmanager
def gathered_warnings(where: str = "") -> Iterator[None]:
    """Collects what :func:`warn_of` warns of. Equal warnings are logged once, at the end of the outermost block.

    Args:
        where: What all warnings begin with; only that of the outermost block counts.
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
    """Warns of some things, at the end of the outermost :func:`gathered_warnings`.

    Args:
        one: What each of them is.
        many: The same in the plural.
        said: What holds for them.
        found: The things, and how each is called in the warning.
        among: All things that were looked at.
    """
    with gathered_warnings():
        kinds = _gathered.get()
        assert kinds is not None
        found_before, among_before = kinds.setdefault((one, many, said), ({}, set()))
        found_before |= {thing: name for thing, name in found.items() if thing not in found_before}
        among_before |= set(among)
