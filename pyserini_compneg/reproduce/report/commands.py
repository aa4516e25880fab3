"""The commands under a table, which compute its figures again from its run files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pyserini_compneg.reproduce.results import Row, Section
from pyserini_compneg.reproduce.term_measures import TERM_MEASURES


def eval_command(section: Section, rows: Sequence[Row], measures: Sequence[str]) -> str:
    """What recomputes rows, in the folder of the report; of several runs a line for each; empty without any."""
    runs = [row.run for row in rows if row.run is not None]
    options = [word for measure in measures if measure not in TERM_MEASURES for word in ("-m", measure)]
    if not runs or not options:
        return ""
    command = shlex.join(["python", "-m", "pyserini_compneg.eval", "--qrels", section.qrels, *options])
    first, *others = map(shlex.quote, runs)
    separator = " \\\n    " if others else " "
    return separator.join([command, f"--run {first}", *others])


def uncomputed(rows: Sequence[Row], measures: Sequence[str]) -> str:
    """The measures that the command leaves out, and why, in a sentence; empty where it leaves out nothing."""
    names = [measure for measure in measures if rows and measure in TERM_MEASURES]
    if not names:
        return ""
    reason = "count words in the texts of documents; the command that made this report computes them from the run files"
    return f"{', '.join(names)} {reason}, which are kept."
