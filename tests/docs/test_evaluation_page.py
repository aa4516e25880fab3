"""The table of measures of ``docs/evaluation.md`` holds names that there are."""

import pydoc
import re
from pathlib import Path

import pyserini_compneg
from pyserini_compneg.eval import parse_measures

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_help_shows_what_the_page_uses():
    shown = pydoc.render_doc(pyserini_compneg, renderer=pydoc.plaintext)
    assert all(f"\n    {name}(" in shown for name in ("evaluate", "parse_measures", "read_qrels", "read_run"))


def test_every_measure_of_the_table_is_known():
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    names = [name.replace("@N", "@5") for cell in cells for name in re.findall("`([^`-]+)`", cell)]
    assert len(names) == 18 and "paired_accuracy" in names
    assert [measure.name for measure in parse_measures(names)] == names
