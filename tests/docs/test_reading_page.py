"""The page about reading shows what the code does."""

import re
from pathlib import Path

from pyserini_compneg.compose import DIFFERENCES
from pyserini_compneg.expression import format_expression
from pyserini_compneg.reading import decompose
from pyserini_compneg.search.display import decomposition_lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")


def test_the_example_is_read_as_shown():
    text = re.search(r"--query '(.*?)' --explain", PAGE)[1]
    result = decompose(text)
    shown = [format_expression(result.expression), *(f"  {line}" for line in decomposition_lines(result))]
    assert "".join(f"    {line}\n" for line in shown) in PAGE
    assert format_expression(result.expression) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_operator_has_been_compared():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(DIFFERENCES) - {"vanilla"} == named
