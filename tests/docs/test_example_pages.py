"""The examples of ``docs/filters.md`` and ``docs/scores.md`` run, and show what they show."""

import re
import shlex
from pathlib import Path

import pytest

from pyserini_compneg import build_index
from pyserini_compneg.commands.demo import ENCODER, VECTORS
from pyserini_compneg.commands.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHOWN = r"(?:\n(?!    compneg)((?:(?:    [^\n]*)?\n)+?)(?=\S|    compneg))?"
STEPS = re.compile(rf"^```python\n(.*?)^```\n{SHOWN}|^    (compneg [^\n]*)\n{SHOWN}", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "scripts"), [("filters", [True, False, False, False]), ("scores", [True])])
def test_a_page(tmp_path, monkeypatch, capsys, page, scripts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyserini_compneg").symlink_to(ROOT / "pyserini_compneg")
    steps = STEPS.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert [bool(script) for script, *_ in steps] == scripts
    if page == "scores":
        build_index(VECTORS, tmp_path / "indexes" / "sample", encoder=ENCODER)
    for script, printed, command, shown in steps:
        if script:
            exec(script, {})
        else:
            assert main(shlex.split(command)[1:]) == 0
        expected = [line[4:] for line in (printed or shown).rstrip().splitlines()]
        assert capsys.readouterr().out.splitlines() == expected
