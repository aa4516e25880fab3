"""What ``explain`` prints in the README is what it prints."""

import re
import shlex
from pathlib import Path

from pyserini_compneg.commands.demo import DOCUMENTS
from pyserini_compneg.commands.explain import main
from pyserini_compneg.index import build_index

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_explanations(tmp_path, capfd):
    build_index(DOCUMENTS, tmp_path / "sample", store_raw=True)
    section = README.partition("\n## Why\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^    (python (?:.*\\\n)*.*)\n\n((?:(?:    .*)?\n)+)", section, re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        arguments = shlex.split(command.replace("\\\n", "").replace("indexes/sample", str(tmp_path / "sample")))
        assert arguments[:3] == ["python", "-m", "pyserini_compneg.explain"]
        capfd.readouterr()
        assert main(arguments[3:]) == 0
        assert capfd.readouterr().out.splitlines() == [line[4:] for line in output.rstrip().splitlines()]
