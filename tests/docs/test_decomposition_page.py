"""The page about decomposition shows what the code does."""

import json
import re
from collections import Counter
from pathlib import Path

from pyserini_compneg.compose import DIFFERENCES
from pyserini_compneg.expression import format_expression
from pyserini_compneg.reading import decompose
from pyserini_compneg.search.display import decomposition_lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "decomposition.md").read_text(encoding="utf-8")


def test_the_example_is_read_as_shown():
    text = re.search(r"--query '(.*?)' --explain", PAGE)[1]
    result = decompose(text)
    shown = [format_expression(result.expression), *(f"  {line}" for line in decomposition_lines(result))]
    assert "".join(f"    {line}\n" for line in shown) in PAGE
    assert format_expression(result.expression) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_operator_has_been_compared():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(DIFFERENCES) - {"vanilla"} == named


def test_what_is_split_was_judged():
    """That the judgements are of all that is split is a test of real texts."""
    lines = (ROOT / "tests" / "reading" / "data" / "readings.jsonl").read_text("utf-8").splitlines()
    judged = [reading for reading in map(json.loads, lines) if reading["split"]]
    split, wrong = Counter(), Counter()
    for reading in judged:
        split[reading["dataset"]] += 1
        wrong[reading["dataset"]] += not reading["right"]
    rows = {name.lower(): int(count) for name, count in re.findall(r"^\| (\w+), [^|]* \| (\d+) \|$", PAGE, re.M)}
    assert rows == {name: split[name] for name in ("scifact", "cisi", "nevir")}
    said = f"Of the questions of NevIR {wrong['nevir']} are split wrongly, as judged by reading all {split['nevir']}."
    assert said in " ".join(PAGE.split())


def test_the_stages_are_the_modules():
    named = re.findall(r"^\d\. `(\w+)`", PAGE, re.MULTILINE)
    assert len(named) == 8
    assert all((ROOT / "pyserini_compneg" / "reading" / f"{name}.py").is_file() for name in named)
    put_together = (ROOT / "pyserini_compneg" / "reading" / "decomposing.py").read_text(encoding="utf-8")
    called = set(re.findall(r"^from pyserini_compneg\.reading\.(\w+) import", put_together, re.MULTILINE))
    assert called - {"language"} <= {*named}
