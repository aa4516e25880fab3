"""Characters that neither protocols nor reports may hold."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of characters, which cannot be written."""


def printable(text: str) -> str:
    r"""The text without control characters, and without halves of characters, which cannot be written.

    >>> printable("a\x1b[2J\tb\ud83d")
    'a\ufffd[2J\tb\ufffd'
    """
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
