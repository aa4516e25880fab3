"""Checks of arguments that Python would take in another sense, and use without a word."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from pyserini_compneg.errors import ArgumentError
from pyserini_compneg.terminal import shown


def checked_count(name: str, value: int) -> int:
    """An argument that is a whole number from 1, as an ``int``.

    Raises:
        ArgumentError: It is something else; ``True``, 1.0 and "1" are.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError(f"{name} must be a whole number from 1, got {shown(value)}")
    return int(value)


def checked_list(name: str, values: object) -> list[Any]:
    """An argument that is a list, or another iterable of several things.

    Raises:
        ArgumentError: It is something else; a text, which would be taken letter by letter, is.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list, got {shown(values)}")
    return list(values)
