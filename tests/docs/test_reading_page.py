"""The page about reading shows what the code does."""

import json
import re
from collections import Counter
from pathlib import Path

from pyserini_compneg.compose import DIFFERENCES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")


def test_every_operator_has_been_compared():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(DIFFERENCES) - {"vanilla"} == named


def test_the_counts_of_wrong_readings_are_those_of_the_judgements():
    lines = (ROOT / "tests" / "reading" / "data" / "readings.jsonl").read_text("utf-8").splitlines()
    apart, wrong = Counter(), Counter()
    for judged in map(json.loads, lines):
        apart[judged["dataset"]] += 1
        wrong[judged["dataset"]] += not judged["right"]
    rows = re.findall(r"^\| (\w+).* \| [\d,]+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    names = {"SciFact": "scifact", "CISI": "cisi", "NevIR": "nevir", "encyclopaedic": "pairs"}
    assert {names[name]: (int(a), int(w)) for name, a, w in rows} == {
        name: (apart[name], wrong[name]) for name in apart
    }
