"""What the pages show as the output of a command is what the command prints."""

import re
import shlex
from pathlib import Path

import pytest

from pyserini_compneg.commands.demo import ENCODER, VECTORS
from pyserini_compneg.commands.main import main
from pyserini_compneg.index import build_index

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "sample"
    build_index(VECTORS, folder, encoder=ENCODER, store_raw=True)
    return folder


@pytest.mark.parametrize(("page", "examples"), [("README.md", 1), ("docs/explaining.md", 2)])
def test_output(page, examples, sample, capfd):
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.findall(r"^    (?:\$ )?compneg ((?:.*\\\n)*.*)\n\n((?:(?:    .*)?\n)+)", text, re.MULTILINE)
    assert len(shown) == examples
    for command, output in shown:
        arguments = shlex.split(command.replace("\\\n", "").replace("indexes/sample", str(sample)))
        capfd.readouterr()
        assert main(arguments) == 0
        assert capfd.readouterr().out.splitlines() == [line[4:] for line in output.rstrip().splitlines()]
