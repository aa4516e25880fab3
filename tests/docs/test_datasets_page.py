"""``docs/datasets.md`` has a row for every kind of dataset, and its example of a conversion runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from pyserini_compneg.lab.experiments.datasets import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_every_kind_has_a_row():
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == KINDS


def test_the_conversion(tmp_path):
    (command,) = re.findall(r"^    python -m pyserini_compneg.datasets (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    (tmp_path / "data" / "nevir").mkdir(parents=True)
    (tmp_path / "data" / "nevir" / "dev.csv").write_text("id,WorkerId,q1,q2,doc1,doc2\n1-1,w,a,b,c,d\n")
    line = [sys.executable, "-m", "pyserini_compneg.datasets", *command.split()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(line, check=True, cwd=tmp_path, env=environment)
    files = {path.name for path in (tmp_path / "nevir-dev").rglob("*")}
    assert files == {"collection", "documents.jsonl", "topics.jsonl", "topics.plain.tsv", "qrels.txt"}
