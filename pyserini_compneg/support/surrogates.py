"""Halves of surrogate pairs, which Python and JSON permit in a text, and UTF-8 does not.

The policy depends on the purpose of the text:

- Input that names or contains something is refused: JSON, tables, flags, ids of runs, values of filters.
- In texts that models read, that are analysed or stored, each half becomes a question mark, which is no term.
- In texts that are shown, or split into words, each half becomes U+FFFD, the replacement character.
- An id that is looked up keeps its halves (``surrogatepass``), so it is not found.
"""

from __future__ import annotations

import re

HALVES = "\ud800-\udfff"
"""All halves, for a class of characters in a regular expression."""

_HALF = re.compile(f"[{HALVES}]")


def has_half(text: str) -> bool:
    return not text.isascii() and _HALF.search(text) is not None


def utf8(text: str) -> bytes:
    """The bytes of a text, with a question mark for each half."""
    return text.encode(errors="replace")


def without_halves(text: str, sign: str = "?") -> str:
    r"""The text with a sign for each half.

    >>> without_halves("a \ud800 bird"), without_halves("a \ud800 bird", "-")
    ('a ? bird', 'a - bird')
    """
    return _HALF.sub(sign, text)
