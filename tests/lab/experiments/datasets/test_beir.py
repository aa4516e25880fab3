import gzip

import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.topics.topics import Topic

QUERIES = '{"_id": "1", "text": "emus (not) bats", "metadata": {}}\n{"_id": "2", "text": "bats"}\n'
HEADER = "query-id\tcorpus-id\tscore\n"
TOPICS = [Topic("1", "emus (not) bats", Atom("emus (not) bats")), Topic("2", "bats", Atom("bats"))]


@pytest.fixture
def folder(tmp_path):
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as handle:
        handle.write('{"_id": "d1", "title": "Emu", "text": "A bird."}\n{"_id": "d2", "title": "", "text": "A bat."}\n')
    return tmp_path


@pytest.fixture
def beir(folder):
    (folder / "queries.jsonl").write_text(QUERIES)
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(f"{HEADER}2\td2\t1\n2\td1\t0\n")
    (folder / "qrels" / "train.tsv").write_text(f"{HEADER}1\td1\t2\n")
    return folder


def test_queries_of_all_splits_in_one_file(beir):
    dataset = open_dataset(beir)
    assert (dataset.kind, dataset.splits, dataset.collection) == ("beir", ("test", "train"), beir / "corpus.jsonl.gz")
    assert dataset.topics("test") == TOPICS[1:]
    assert dataset.qrels("test") == {"2": {"d2": 1, "d1": 0}}
    assert dataset.topics("train") == TOPICS[:1]
    documents = dataset.documents("test")
    assert [(document.docid, document.text) for document in documents] == [("d1", "Emu\nA bird."), ("d2", "\nA bat.")]


def test_files_of_their_own_for_a_split_are_taken_whole(folder):
    (folder / "queries.dev.jsonl").write_text(QUERIES)
    (folder / "qrels.dev.tsv").write_text(f"{HEADER}2\td2\t1\n")
    dataset = open_dataset(folder)
    assert dataset.splits == ("dev",)
    assert dataset.topics("dev") == TOPICS
    assert dataset.qrels("dev") == {"2": {"d2": 1}}


def test_packed_judgements_and_queries(folder):
    for name, text in (("queries.dev.jsonl", QUERIES), ("qrels.dev.tsv", f"{HEADER}2\td2\t1\n")):
        with gzip.open(folder / f"{name}.gz", "wt") as handle:
            handle.write(text)
    (folder / "qrels").mkdir()
    with gzip.open(folder / "qrels" / "test.tsv.gz", "wt") as handle:
        handle.write(HEADER)
    (folder / "qrels" / "test.tsv").write_text(f"{HEADER}1\td1\t1\n")
    (folder / "queries.jsonl").write_text(QUERIES)
    dataset = open_dataset(folder)
    assert dataset.splits == ("dev", "test")
    assert (dataset.topics("dev"), dataset.qrels("dev")) == (TOPICS, {"2": {"d2": 1}})
    assert (dataset.topics("test"), dataset.qrels("test")) == (TOPICS[:1], {"1": {"d1": 1}})


def test_judged_queries_that_nobody_asked(beir):
    path = beir / "qrels" / "test.tsv"
    path.write_text(f"{HEADER}2\td2\t1\n7\td2\t1\n")
    for read in (open_dataset(beir).topics, open_dataset(beir).qrels):
        assert refusal(read, "test") == f"{path}: 1 of 2 queries are not in {beir}/queries.jsonl, first '7'"
