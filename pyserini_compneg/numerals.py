"""Numbers in texts, such as flags and columns. Python itself also takes ``١``, ``1_000``, ``inf`` and blanks."""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses a little more digits than that
_FINITE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def whole_number(text: str) -> int | None:
    """The whole number that a text is, in ASCII digits; None for any other text.

    >>> whole_number("-7"), whole_number("1_000"), whole_number("١"), whole_number("1.0")
    (-7, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def finite_number(text: str) -> float | None:
    """The finite number that a text is, in ASCII digits; None for any other text.

    >>> finite_number("2.5e-1"), finite_number("1e999"), finite_number("nan"), finite_number("1_0")
    (0.25, None, None, None)
    """
    value = float(text) if _FINITE.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
