"""Drawings on terminals of any width, and texts that would steer the terminal."""

import io
import re

import pytest
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pyserini_compneg.display.drawing import _contribution_tables, _heading, draw
from pyserini_compneg.display.hit_list import titled
from pyserini_compneg.search.explanation import Explanation, Lowering

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


def test_no_text_steers_the_terminal():
    terminal = Terminal()
    tree = Tree(Text("an atom\x1b[2J"))
    table = Table("a\x07term")
    draw(terminal, ["a heading\x1b[31m \u202e", titled("a title\x1b]0;x\x07", "d\x9b1"), tree, table])
    assert "heading [31m" in terminal.getvalue()
    kept = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())  # rich's own colours
    assert all(line.isprintable() for line in kept.splitlines())


@pytest.mark.parametrize(
    ("lowering", "score", "shown"),
    [
        (Lowering(0.5, 4.0, 3.75), 3.75, "rank 2, by passage 3, lowered from 4.000 to 3.750 by r = 0.500"),
        (Lowering(0.5, 4.0, 3.75), 9.0, "rank 2, by passage 3, a part lowered from 4.000 to 3.750 by r = 0.500"),
        (Lowering(0.02, 4.0, 3.99999), 3.99999, "rank 2, by passage 3"),
    ],
)
def test_what_is_lowered(lowering, score, shown):
    document = Explanation("d", score, matched=True, contributions=(), rank=2, passage=3, lowered=(lowering,))
    assert _heading(document, is_hybrid=False) == f"d: {shown}"
