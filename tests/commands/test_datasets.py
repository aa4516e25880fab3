import pytest

from pyserini_compneg.commands.datasets import main
from pyserini_compneg.commands.demo import SAMPLE


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Converts the sample into the folder ``out``; gives the exit code and what is printed."""
    monkeypatch.chdir(tmp_path)

    def convert(*arguments):
        code = main(["convert", "--dataset", str(SAMPLE), "--output", "out", *arguments])
        return code, *capsys.readouterr()

    return convert


def test_convert(convert, tmp_path):
    assert convert("--split", "queries") == (0, "", "out: 4000 documents, 42 queries, 718 judgements\n")
    names = ["collection", "qrels.txt", "topics.plain.tsv", "topics.tsv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names


def test_errors_are_one_line(convert):
    assert convert("--split", "dev") == (2, "", f"error: {SAMPLE}: no split 'dev'; there are: queries\n")
    missing = "corpus.jsonl is missing, plain or gzip, which the kind beir needs"
    assert convert("--split", "dev", "--kind", "beir") == (2, "", f"error: {SAMPLE}: {missing}\n")
    code, _, message = convert()
    assert code == 2 and message.startswith("error: the following arguments are required: --split\n")
