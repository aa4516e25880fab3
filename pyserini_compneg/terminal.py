"""Texts from files and users on their way to a terminal: without characters that steer it, and of limited length."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 60
_LINE = 500


def printable(text: str) -> str:
    r"""The text with blanks for characters that would move the cursor, change the direction of the line, or end it.

    >>> printable("a\tb\x1b[31m\n")
    'a b [31m '
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def printable_lines(text: str) -> str:
    r"""The text line by line, each :func:`printable` and at most 500 characters long; the middle is left out.

    >>> printable_lines("one\x1b[1m\ntwo")
    'one [1m\ntwo'
    """
    lines = map(printable, text.split("\n"))
    return "\n".join(
        line if len(line) <= _LINE else f"{line[: _LINE // 2]} ... {line[-_LINE // 2 :]}" for line in lines
    )


def shown(value: object) -> str:
    """A value in a message: its ``repr``, at most 60 characters of it.

    >>> shown("birds " * 100)
    "'birds birds birds birds birds birds birds birds birds bi..."
    """
    text = repr(value[: _MOST + 1] if isinstance(value, str) else value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to add to an error about an unknown word: the known one that is most like it, if one is.

    >>> suggestion("serach", ["search", "index"]), suggestion("x", ["search"])
    ('; did you mean search?', '')
    """
    close = get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
