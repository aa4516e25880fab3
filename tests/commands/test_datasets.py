import json

import pytest
from json_lines import write_jsonl

from pyserini_compneg.commands.datasets import main
from pyserini_compneg.commands.demo import SAMPLE


def test_likings(tmp_path, capsys):
    command = ["likings", "--documents", "200", "--queries", "1", "--output", str(tmp_path / "made")]
    assert main(command) == 0
    assert capsys.readouterr() == ("", f"{tmp_path}/made: 200 documents, 14 queries\n")
    assert main(command) != 0
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/made: exists already")


def test_atoms(tmp_path, capsys):
    """Documents of A AND B have both atoms, those of A NOT B have A, and those of A OR B may have either."""
    queries = (
        ("_ that are also _", "<mark>a</mark> that are also <mark>b</mark>", ["1", "2"]),
        ("_ that are not _", "<mark>a</mark> that are not <mark>b</mark>", ["3"]),
        ("_ or _", "<mark>c</mark> or <mark>b</mark>", ["4"]),
    )
    records = [
        {"query": "q", "original_query": marked, "docs": docs, "metadata": {"template": template}}
        for template, marked, docs in queries
    ]
    file, output = write_jsonl(tmp_path / "any.jsonl", *records), tmp_path / "atoms.jsonl"
    assert main(["atoms", "--topics", str(file), "--output", str(output)]) == 0
    assert [json.loads(line) for line in output.read_text().splitlines()] == [
        {"atom": "a", "docs": ["1", "2", "3"]},
        {"atom": "b", "docs": ["1", "2"]},
    ]
    said = "2 atoms of 3 queries; queries with compositional negatives: 1 of _ that are also _, 1 of _ that are not _"
    assert capsys.readouterr() == ("", f"{output}: {said}\n")
    before = file.read_bytes()
    assert main(["atoms", "--topics", str(file), "--output", str(file)]) == 1
    assert "would overwrite" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("atoms", "the action atoms needs --topics, and no other action takes it"),
        ("convert --dataset d --split s --topics f", "the action atoms needs --topics, and no other action takes it"),
        ("atoms --topics f --split s", "--split belongs to the action convert"),
        ("atoms --topics f --seed 2", "--seed belongs to the action likings"),
        ("likings --topics f", "--topics belongs to the action atoms"),
    ],
)
def test_options_of_other_actions(capsys, arguments, message):
    assert main([*arguments.split(), "--output", "out"]) == 2
    assert message in capsys.readouterr().err


def test_convert(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "--dataset", str(SAMPLE), "--split", "queries", "--output", "out"]) == 0
    assert capsys.readouterr() == ("", "out: 4000 documents, 42 queries, 718 judgements\n")
    names = ["collection", "qrels.txt", "topics.plain.tsv", "topics.tsv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
