"""Texts for a terminal: no control characters, and limited length. Hides the output of libraries."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from typing import TextIO

from pyserini_compneg.support.surrogates import HALVES

_MOST = 60
_LINE = 500
_OUTPUTS = (1, 2)
_REPORT = 'set -f; read lives || { echo "error: $0:" $(grep -v "^.at " "$1") >&2; rm -f "$1"; }'
"""Waits for a line. If its input ends without one, prints the file $1, without stack traces of Java, and deletes it."""

_STEERING = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069{HALVES}]")


def printable(text: str) -> str:
    r"""Replaces characters that would move the cursor, change the direction of the line, or end it, by blanks.

    >>> printable("a\tb\x1b[31m\n")
    'a b [31m '
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def escaped(text: str) -> str:
    r"""Escapes characters that control a terminal: control characters except tabs and line ends, and bidi controls.

    >>> print(escaped("a\x1b[31m\u202e"))
    a\x1b[31m\u202e
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class EscapedOutput(io.TextIOBase):
    """Writes texts to a terminal, :func:`escaped`."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Writes an escaped text. Returns the length of the original text."""
        self._terminal.write(escaped(text))
        return len(text)


def printable_line(text: str) -> str:
    r"""The text as one line of at most 500 characters. The middle of a longer line is left out.

    >>> printable_line("one\x1b[1m\ntwo")
    'one [1m two'
    """
    line = printable(text)
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} ... {line[-_LINE // 2 :]}"


def shown(value: object) -> str:
    """A value for a message: at most 60 characters of its ``repr``.

    >>> shown("birds " * 100)
    "'birds birds birds birds birds birds birds birds birds bi..."
    """
    text = repr(value[: _MOST + 1] if isinstance(value, str) else value)
    text = " ".join(text.split()) if "\n" in text else text  # pandas and numpy write several lines
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the most similar known word, if there is one.

    >>> suggestion("serach", ["search", "index"]), suggestion("x", ["search"])
    ('; did you mean search?', '')
    """
    close = get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


@contextmanager
def captured_output(if_ended: str = "") -> Iterator[Callable[[], str]]:
    """Hides the output of libraries, such as a starting Java machine. The yielded function returns it as one line.

    If ``if_ended`` is given and a library ends the process, standard error gets ``if_ended`` and the output.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    with ExitStack() as opened:
        capture = opened.enter_context(tempfile.NamedTemporaryFile())
        if if_ended:
            opened.enter_context(_reported_end(if_ended, capture.name))
        saved = {number: os.dup(number) for number in _OUTPUTS if _is_open(number)}
        for number in saved:
            os.dup2(capture.fileno(), number)

        def printed() -> str:
            capture.seek(0)
            return " ".join(capture.read().decode(errors="replace").split())

        try:
            yield printed
        finally:
            for number, output in saved.items():
                os.dup2(output, number)
                os.close(output)


@contextmanager
def _reported_end(said: str, output: str) -> Iterator[None]:
    """If C code ends this process, unseen by Python, a waiting shell prints an error with the content of a file."""
    with ExitStack() as opened:
        with suppress(OSError):  # there is no shell, or no room for another process
            waits, lives = os.pipe()
            opened.callback(os.close, lives)
            try:
                command = ["/bin/sh", "-c", _REPORT, said, output]
                shell = subprocess.Popen(
                    command, stdin=waits, stdout=subprocess.DEVNULL, cwd="/", start_new_session=True
                )
            finally:
                os.close(waits)
            opened.callback(shell.wait)
            opened.callback(_send_line, lives)
        yield


def _send_line(number: int) -> None:
    with suppress(OSError):  # nobody reads
        os.write(number, b"\n")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
