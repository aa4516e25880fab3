import os
import subprocess
import sys

import pytest

from pyserini_compneg.commands.demo import SAMPLE


@pytest.fixture
def command(tmp_path):
    def run(*arguments):
        line = [sys.executable, "-m", "pyserini_compneg.datasets", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        answer = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment)
        return answer.returncode, answer.stdout, answer.stderr

    return run


def test_convert(command, tmp_path):
    answer = command("convert", "--dataset", SAMPLE, "--split", "queries", "--output", "out")
    assert answer == (0, "", "out: 4000 documents, 42 queries, 718 judgements\n")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "collection",
        "qrels.txt",
        "topics.plain.tsv",
        "topics.tsv",
    ]


def test_errors_are_one_line(command):
    answer = command("convert", "--dataset", SAMPLE, "--split", "dev", "--output", "out")
    assert answer == (1, "", f"error: {SAMPLE}: no split 'dev'; there are: queries\n")
    answer = command("convert", "--dataset", SAMPLE, "--split", "dev", "--output", "out", "--kind", "beir")
    missing = "corpus.jsonl is missing, plain or gzip, which the kind beir needs"
    assert answer == (1, "", f"error: {SAMPLE}: {missing}\n")


def test_usage(command):
    code, _, said = command()
    assert code == 2
    assert said.endswith("error: the following arguments are required: convert, --dataset, --split, --output\n")
    code, shown, _ = command("convert", "--help")
    assert code == 0
    assert "expressions if the dataset has them, else texts, for --topics" in shown
