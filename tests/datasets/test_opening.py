import pytest

from pyserini_compneg.commands.demo import SAMPLE
from pyserini_compneg.datasets import KINDS, open_dataset
from pyserini_compneg.errors import CollectionError


def refusal(*arguments):
    with pytest.raises(CollectionError) as caught:
        open_dataset(*arguments)
    return str(caught.value)


def test_the_sample_is_a_dataset():
    dataset = open_dataset(SAMPLE)
    assert (dataset.name, dataset.kind, dataset.splits) == ("sample", "filmsets", ("queries",))
    assert len(dataset.topics("queries")) == len(dataset.qrels("queries")) == 42
    assert dataset.provenance == (
        "FilmSets, which is not QUEST, from prust/wikipedia-movie-data (MIT); text from Wikipedia (CC BY-SA)"
    )


def test_a_dataset_is_named_after_its_folder(tmp_path, monkeypatch):
    (tmp_path / "test.csv").write_text("id,WorkerId,q1,q2,doc1,doc2\n1-1,w,a,b,c,d\n")
    monkeypatch.chdir(tmp_path)
    assert open_dataset(".").name == tmp_path.name


def test_an_unknown_split():
    with pytest.raises(CollectionError) as caught:
        open_dataset(SAMPLE).topics("dev")
    assert str(caught.value) == f"{SAMPLE}: no split 'dev'; there are: queries"


def test_no_folder(tmp_path):
    assert refusal(tmp_path / "x") == f"{tmp_path}/x: no such folder"
    (tmp_path / "x").touch()
    assert refusal(tmp_path / "x") == f"{tmp_path}/x: a file, expected a folder"


def test_no_such_kind(tmp_path):
    assert KINDS == ("quest", "filmsets", "nevir", "excluir", "beir", "cisi")
    assert refusal(tmp_path, "msmarco") == (
        "no kind of dataset 'msmarco'; there are: quest, filmsets, nevir, excluir, beir, cisi"
    )


@pytest.mark.parametrize("content", [None, '{"query": "birds"}\n', "{broken\n"])
def test_no_dataset(tmp_path, content):
    if content:
        (tmp_path / "train.jsonl").write_text(content)
    assert refusal(tmp_path) == (
        f"{tmp_path}: no dataset of a known kind; looked for "
        "quest: documents.jsonl with train, val or test.jsonl; "
        "filmsets: the same with query ids; "
        "nevir: train, validation or test.csv, or .jsonl of pairs; "
        "excluir: corpus.json with test_manual_final.json, or a sample; "
        "beir: corpus.jsonl with queries.jsonl and qrels/SPLIT.tsv or qrels.SPLIT.tsv; "
        "cisi: CISI.ALL with CISI.QRY and CISI.REL"
    )


def test_a_broken_first_line_is_for_the_reader_to_name(tmp_path):
    (tmp_path / "dev.jsonl").write_text('{broken\n{"id": "1-1", "q1": "a", "q2": "b", "doc1": "c", "doc2": "d"}\n')
    with pytest.raises(CollectionError) as caught:
        open_dataset(tmp_path).topics("dev")
    assert str(caught.value) == (
        f"{tmp_path}/dev.jsonl:1: not valid JSON: Expecting property name enclosed in double quotes at column 2"
    )


def test_a_kind_that_is_named_is_not_looked_for(tmp_path):
    (tmp_path / "corpus.jsonl").touch()
    assert refusal(tmp_path, "quest") == (
        f"{tmp_path}: documents.jsonl is missing, plain or gzip, which the kind quest needs"
    )
