from pyserini_compneg.commands.datasets import main
from pyserini_compneg.commands.demo import SAMPLE


def test_likings(tmp_path, capsys):
    command = ["likings", "--documents", "200", "--queries", "1", "--output", str(tmp_path / "made")]
    assert main(command) == 0
    assert capsys.readouterr() == ("", f"{tmp_path}/made: 200 documents, 14 queries\n")
    assert main(command) != 0
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/made: exists already")


def test_convert(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "--dataset", str(SAMPLE), "--split", "queries", "--output", "out"]) == 0
    assert capsys.readouterr() == ("", "out: 4000 documents, 42 queries, 718 judgements\n")
    names = ["collection", "qrels.txt", "topics.plain.tsv", "topics.tsv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
