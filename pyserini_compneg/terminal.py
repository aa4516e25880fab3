"""What reaches a terminal: texts without characters that steer it, of limited length, and not what libraries print."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_MOST = 60
_LINE = 500
_STDERR = 2


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


@contextmanager
def captured_stderr() -> Iterator[Callable[[], str]]:
    """Hides what libraries print on standard error, such as a Java machine that starts; gives it in one line."""
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as capture:
        saved = os.dup(_STDERR)
        os.dup2(capture.fileno(), _STDERR)

        def printed() -> str:
            capture.seek(0)
            return " ".join(capture.read().decode(errors="replace").split())

        try:
            yield printed
        finally:
            os.dup2(saved, _STDERR)
            os.close(saved)
