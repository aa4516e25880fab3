"""Tables of the pages have the names that there are."""

import pydoc
import re
from pathlib import Path

import pytest

import pyserini_compneg
from pyserini_compneg.compose import DIFFERENCES
from pyserini_compneg.eval import parse_measures
from pyserini_compneg.lab.experiments.datasets import KINDS
from pyserini_compneg.lab.training.config import recipe_names


def page(name):
    return (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "expected"), [("reference/datasets", KINDS), ("explanations/exclusion", {*DIFFERENCES} - {"vanilla"})]
)
def test_every_name_has_a_row(name, expected):
    assert {*re.findall(r"^\| `(\w+)` \|", page(name), re.MULTILINE)} == {*expected}


def test_every_measure_of_the_table_is_known():
    cells = re.findall(r"^\| (`.*?) \|", page("how-to/evaluation"), re.MULTILINE)
    names = [name.replace("@N", "@5") for cell in cells for name in re.findall("`([^`-]+)`", cell)]
    assert "paired_accuracy" in names
    assert [measure.name for measure in parse_measures(names)] == names


def test_every_recipe_is_in_the_table():
    rows = [line for line in page("how-to/training").splitlines() if line.startswith("| `") and line.count("|") == 4]
    kinds = r"table\d|filmsets|nevir-split|excluir"
    table = "\n".join(row for row in rows if re.match(rf"\| `({kinds})", row))
    named = {*re.findall(rf"`((?:{kinds})-[\w-]+)`", table), "reader"}
    named |= {f"filmsets-full-{suffix}" for suffix in re.findall(r"`-(\w+)`", table)}
    assert named == {*recipe_names()}


def test_help_shows_what_is_imported_late():
    shown = pydoc.render_doc(pyserini_compneg, renderer=pydoc.plaintext)
    assert all(f"\n    {name}(" in shown for name in ("evaluate", "parse_measures", "read_qrels", "read_run"))
