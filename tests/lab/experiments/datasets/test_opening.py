import pytest
from refusals import refusal

from pyserini_compneg.commands.demo import SAMPLE
from pyserini_compneg.lab.experiments.datasets import KINDS, open_dataset


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
    assert refusal(open_dataset(SAMPLE).topics, "dev") == f"{SAMPLE}: no split 'dev'; there are: queries"


def test_no_folder(tmp_path):
    assert refusal(open_dataset, tmp_path / "x") == f"{tmp_path}/x: no such folder"
    (tmp_path / "x").touch()
    assert refusal(open_dataset, tmp_path / "x") == f"{tmp_path}/x: a file, expected a folder"


def test_no_such_kind(tmp_path):
    assert KINDS == ("likings", "quest", "filmsets", "nevir", "excluir", "nq", "beir", "cisi")
    assert refusal(open_dataset, tmp_path, "msmarco") == (
        "no kind of dataset 'msmarco'; there are: likings, quest, filmsets, nevir, excluir, nq, beir, cisi"
    )


@pytest.mark.parametrize("content", [None, '{"query": "birds"}\n'])
def test_no_dataset(tmp_path, content):
    if content:
        (tmp_path / "train.jsonl").write_text(content)
    assert refusal(open_dataset, tmp_path) == (
        f"{tmp_path}: no dataset of a known kind; looked for "
        "likings: documents.jsonl with words and phrases.jsonl; "
        "quest: documents.jsonl with train, val or test.jsonl; "
        "filmsets: the same with query ids; "
        "nevir: train, validation or test.csv, or .jsonl of pairs; "
        "excluir: corpus.json with test_manual_final.json, or a sample; "
        "nq: simplified-nq-train.jsonl or nq-dev-all.jsonl; "
        "beir: corpus.jsonl with queries.jsonl and qrels/SPLIT.tsv or qrels.SPLIT.tsv; "
        "cisi: CISI.ALL with CISI.QRY and CISI.REL"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{broken", "not valid JSON: Expecting property name enclosed in double quotes at column 2"),
        (b"\xff", "not UTF-8 text: invalid start byte at byte 1"),
    ],
)
def test_a_broken_first_line_is_named_whatever_the_kind(tmp_path, content, message):
    (tmp_path / "dev.jsonl").write_bytes(content)
    assert refusal(open_dataset, tmp_path) == f"{tmp_path}/dev.jsonl:1: {message}"


MISSING = "is missing, plain or gzip, which the kind"
FILES = "train.jsonl, train_aug.jsonl, val.jsonl, dev.jsonl, test.jsonl, queries.jsonl"


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [
        ("quest", "dev.jsonl", f"documents.jsonl {MISSING} quest needs"),
        ("filmsets", "documents.jsonl", f"no queries; the kind filmsets needs one of {FILES}, plain or gzip"),
        ("nevir", "", "no pairs; the kind nevir needs train, validation, val, dev, test, each .csv or .jsonl"),
        ("excluir", "", f"corpus.json {MISSING} excluir needs"),
        ("excluir", "queries.dev.jsonl", f"corpus.jsonl {MISSING} excluir needs"),
        ("nq", "", "no questions; the kind nq needs nq-dev-all.jsonl or simplified-nq-train.jsonl, plain or gzip"),
        ("beir", "qrels.dev.tsv", f"corpus.jsonl {MISSING} beir needs"),
        ("beir", "corpus.jsonl", "no judgements; the kind beir needs qrels/SPLIT.tsv or qrels.SPLIT.tsv"),
        ("beir", "corpus.jsonl qrels.dev.tsv", f"queries.dev.jsonl or queries.jsonl {MISSING} beir needs"),
        ("cisi", "CISI.ALL CISI.QRY", f"CISI.REL {MISSING} cisi needs"),
    ],
)
def test_a_missing_file(tmp_path, kind, files, message):
    for name in files.split():
        (tmp_path / name).touch()
    assert refusal(open_dataset, tmp_path, kind) == f"{tmp_path}: {message}"
