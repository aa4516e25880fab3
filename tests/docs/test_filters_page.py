"""The examples of ``docs/filters.md`` run, and show what they show."""

import re
import shlex
from pathlib import Path

import pytest

from pyserini_compneg.commands.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
SHOWN = r"(?:\n(?!    compneg)((?:(?:    [^\n]*)?\n)+?)(?=\S|    compneg))?"
STEPS = re.compile(rf"^```python\n(.*?)^```\n{SHOWN}|^    (compneg [^\n]*)\n{SHOWN}", re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyserini_compneg").symlink_to(ROOT / "pyserini_compneg")
    steps = STEPS.findall(PAGE)
    assert [bool(script) for script, *_ in steps] == [True, False, False, False, True]
    for script, printed, command, shown in steps:
        if script:
            exec(script, {})
        else:
            assert main(shlex.split(command)[1:]) == 0
        expected = [line[4:] for line in (printed or shown).rstrip().splitlines()]
        assert capsys.readouterr().out.splitlines() == expected
