import json

import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.examples import TrainingExample, read_examples
from pyserini_compneg.topics.topics import Topic

QUERY = "Which birds, except (all) emus?"


def official(folder, *records):
    (folder / "corpus.json").write_text(json.dumps(["An emu.", "A bat."], indent=1))
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


def test_a_training_file_has_the_same_records(tmp_path):
    (tmp_path / "train_final.json").write_text(json.dumps([{"ExcluQ": QUERY, "index": [0, 1]}]))
    dataset = official(tmp_path, {"ExcluQ": QUERY, "index": [0, 1]})
    assert dataset.splits == ("test", "train")
    assert dataset.topics("train") == dataset.topics("test") and dataset.qrels("train") == dataset.qrels("test")
    examples = read_examples(SourceConfig(dataset=str(tmp_path), split="train", negatives="judged"), 0)
    assert examples == [TrainingExample(QUERY, "A bat.", ("An emu.",))]
    (tmp_path / "train2.json").write_text("[]")
    assert refusal(open_dataset, tmp_path) == (
        f"{tmp_path}: train2.json, train_final.json: several files of training queries; leave one"
    )


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


POSITIONS = "expected [negative, positive], two positions in corpus.json from 0, as corpus_sub_index or index"


@pytest.mark.parametrize(
    ("part", "records", "message"),
    [
        ("qrels", [7], "query 0: expected a JSON object, got a whole number"),
        ("qrels", [{"index": [0, 0]}], "query 0: document '0' is both the positive and the negative one"),
        ("qrels", [{"index": [0, True]}], f"query 0: {POSITIONS}, got [0, True]"),
        ("qrels", [{"index": [0, -1]}], f"query 0: {POSITIONS}, got [0, -1]"),
        ("qrels", [{"index": [0]}], f"query 0: {POSITIONS}, got [0]"),
        ("qrels", [{}], f"query 0: {POSITIONS}, got None"),
        ("topics", [{"ExcluQ": " "}], "query 0: no query; expected a text as RQ_rewrite or ExcluQ"),
        ("topics", [], "no queries"),
    ],
)
def test_bad_queries(tmp_path, part, records, message):
    read = getattr(official(tmp_path, *records), part)
    assert refusal(read, "test") == f"{tmp_path}/test_manual_final.json: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('["a", 1]', ": document 1: expected a text, got a whole number"),
        ('[\n"a",\nb]', ":3: not valid JSON: Expecting value at column 1"),
        ("{}", ": expected a JSON list, got an object"),
    ],
)
def test_bad_documents(tmp_path, content, message):
    dataset = official(tmp_path)
    (tmp_path / "corpus.json").write_text(content)
    assert refusal(lambda: list(dataset.documents("test"))) == f"{tmp_path}/corpus.json{message}"
