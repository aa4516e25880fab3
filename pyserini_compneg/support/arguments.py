"""Checks of arguments and numbers that Python would misread: a text as a list, ``١`` or ``1_000`` as a number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses slightly more digits
_FINITE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def checked_count(name: str, value: int) -> int:
    """Checks that an argument is a whole number from 1. Returns it as an ``int``."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or value < 1:  # the test for int is fast
        raise ArgumentError(f"{name} must be a whole number from 1, got {shown(value)}")
    return int(value)


def checked_list(name: str, values: object) -> list[Any]:
    """Checks that an argument is a list or another iterable, but not a single text. Returns a list."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (list, Iterable)):  # the test for list is fast
        raise ArgumentError(f"{name} must be a list, got {shown(values)}")
    return list(values)


def whole_number(text: str) -> int | None:
    """The whole number that a text represents in ASCII digits; None for any other text.

    >>> whole_number("-7"), whole_number("1_000"), whole_number("١"), whole_number("1.0")
    (-7, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def finite_number(text: str) -> float | None:
    """The finite number that a text represents in ASCII digits; None for any other text.

    >>> finite_number("2.5e-1"), finite_number("1e999"), finite_number("nan"), finite_number("1_0")
    (0.25, None, None, None)
    """
    value = float(text) if _FINITE.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
