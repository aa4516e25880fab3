"""Drawings on terminals of any width, and texts that would steer the terminal."""

import io

import pytest

from pyserini_compneg.search.display import titled
from pyserini_compneg.search.drawing import _contribution_tables, draw

ROWS = [("a term of some length", [1234.5, 0.0, 1234.5]), ("film∩spy", [0.0, 20000.25, -20000.25])]


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self):
        return True


@pytest.mark.parametrize("columns", ["5", "20", "40", "200"])
def test_no_term_and_no_number_is_cut_on_a_narrow_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    terminal = Terminal()
    draw(terminal, _contribution_tables([[*ROWS, ("score", [1234.5, 20000.25, -18765.75])]], ("A", "B", "A - B")))
    shown = terminal.getvalue()
    for text in ("a term of some length", "film∩spy", "1234.500", "20000.250", "-20000.250", "-18765.750"):
        assert text in shown


def test_no_title_and_no_id_steers_the_terminal():
    assert titled("a\x1b[31mb", "d\u202e1") == "a [31mb  [d 1]"
    assert titled(None, "d\x071") == "d 1"
