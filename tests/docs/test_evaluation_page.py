"""The example of ``docs/evaluation.md`` runs as it stands, and its table of measures holds names that there are."""

import re
from pathlib import Path

from pyserini_compneg.eval import parse_measures
from pyserini_compneg.eval.term_frequencies import TermFrequencies

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_example_in_python():
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names = {}
    exec(code, names)
    assert names["asked"] == TermFrequencies(texts=1 / 2, words=1 / 9)
    assert names["negated"] == TermFrequencies(texts=1 / 2, words=1 / 9)


def test_every_measure_of_the_table_is_known():
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    names = [name.replace("@N", "@5") for cell in cells for name in re.findall("`([^`-]+)`", cell)]
    assert len(names) == 15 and "paired_accuracy" in names
    assert [measure.name for measure in parse_measures(names)] == names
