"""The example of ``docs/evaluation.md`` runs as it stands, and its table of measures holds names that there are."""

import pydoc
import re
from pathlib import Path

import pyserini_compneg
from pyserini_compneg.eval import parse_measures
from pyserini_compneg.eval.term_frequencies import TermFrequencies

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_examples_in_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text("1 0 a 1\n2 0 b 1\n")
    Path("run.txt").write_text("1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n")
    measures, widdows = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names = {}
    exec(measures + widdows, names)
    assert names["mean"] == 0.5
    assert names["asked"] == TermFrequencies(texts=1 / 2, words=1 / 9)
    assert names["negated"] == TermFrequencies(texts=1 / 2, words=1 / 9)


def test_help_shows_what_the_page_uses():
    shown = pydoc.render_doc(pyserini_compneg, renderer=pydoc.plaintext)
    assert all(f"\n    {name}(" in shown for name in ("evaluate", "parse_measures", "read_qrels", "read_run"))


def test_every_measure_of_the_table_is_known():
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    names = [name.replace("@N", "@5") for cell in cells for name in re.findall("`([^`-]+)`", cell)]
    assert len(names) == 18 and "paired_accuracy" in names
    assert [measure.name for measure in parse_measures(names)] == names
