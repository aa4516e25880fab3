import json

import pytest
from refusals import refusal

from pyserini_compneg.datasets import open_dataset
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import Atom

QUERY = "Which birds, except (all) emus?"


def official(folder, *records, corpus=("An emu.", "A bat.")):
    (folder / "corpus.json").write_text(json.dumps(corpus, indent=1))
    (folder / "test_manual_final.json").write_text(json.dumps(records))
    return open_dataset(folder)


@pytest.mark.parametrize("text", ["RQ_rewrite", "ExcluQ"])
@pytest.mark.parametrize("index", ["corpus_sub_index", "index"])
def test_the_official_files(tmp_path, text, index):
    dataset = official(tmp_path, {"question0": "Which birds?", text: QUERY, index: [0, 1]})
    assert (dataset.kind, dataset.splits, dataset.collection) == ("excluir", ("test",), None)
    assert dataset.topics("test") == [Topic("excluir_0", QUERY, Atom(QUERY))]
    assert dataset.qrels("test") == {"excluir_0": {"1": 1, "0": 0}}
    documents = dataset.documents("test")
    assert [(document.docid, document.text) for document in documents] == [("0", "An emu."), ("1", "A bat.")]


def test_a_sample(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "0", "title": "Emu", "text": "A bird."}\n')
    query = {"_id": "excluir_7", "text": QUERY, "positive": "9", "negative": "0"}
    (tmp_path / "queries.dev.jsonl").write_text(json.dumps(query))
    dataset = open_dataset(tmp_path)
    assert (dataset.kind, dataset.splits, dataset.collection) == ("excluir", ("dev",), tmp_path / "corpus.jsonl")
    assert dataset.topics("dev") == [Topic("excluir_7", QUERY, Atom(QUERY))]
    assert dataset.qrels("dev") == {"excluir_7": {"9": 1, "0": 0}}
    del query["negative"]
    (tmp_path / "queries.dev.jsonl").write_text(json.dumps(query))
    assert (
        refusal(open_dataset(tmp_path, "excluir").qrels, "dev")
        == f"{tmp_path}/queries.dev.jsonl:1: no `negative` document"
    )


PLACES = "expected [negative, positive], two positions in corpus.json from 0, as corpus_sub_index or index"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (7, "expected a JSON object, got int"),
        ({"index": [0, 0]}, "document '0' is both the positive and the negative one"),
        ({"index": [0, True]}, f"{PLACES}, got [0, True]"),
        ({"index": [0]}, f"{PLACES}, got [0]"),
        ({}, f"{PLACES}, got None"),
    ],
)
def test_bad_judgements(tmp_path, record, message):
    assert refusal(official(tmp_path, record).qrels, "test") == f"{tmp_path}/test_manual_final.json: query 0: {message}"


def test_bad_queries_and_documents(tmp_path):
    assert refusal(official(tmp_path, {"index": [0, 1], "ExcluQ": " "}).topics, "test") == (
        f"{tmp_path}/test_manual_final.json: query 0: no query; expected a text as RQ_rewrite or ExcluQ"
    )
    assert refusal(official(tmp_path).topics, "test") == f"{tmp_path}/test_manual_final.json: no queries"
    assert (
        refusal(lambda: list(official(tmp_path, corpus=["a", 1]).documents("test")))
        == f"{tmp_path}/corpus.json: document 1: expected a text, got int"
    )


def test_broken_json_is_named_by_its_line(tmp_path):
    dataset = official(tmp_path)
    (tmp_path / "corpus.json").write_text('[\n"a",\nb]')
    assert (
        refusal(lambda: list(dataset.documents("test")))
        == f"{tmp_path}/corpus.json:3: not valid JSON: Expecting value at column 1"
    )
    (tmp_path / "corpus.json").write_text("{}")
    assert (
        refusal(lambda: list(dataset.documents("test"))) == f"{tmp_path}/corpus.json: expected a JSON list, got a dict"
    )
