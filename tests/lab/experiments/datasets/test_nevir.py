import csv
import json

import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.topics.topics import Topic

COLUMNS = ["id", "WorkerId", "q1", "q2", "doc1", "doc2"]
PAIR = {"id": "8-2", "q1": "Who (not) flies?", "q2": "Who flies?", "doc1": 'An "emu",\nsay.', "doc2": "A bat."}
QRELS = {"8-2-q1": {"8-2-doc1": 1, "8-2-doc2": 0}, "8-2-q2": {"8-2-doc1": 0, "8-2-doc2": 1}}
DOCUMENTS = [("8-2-doc1", 'An "emu",\nsay.'), ("8-2-doc2", "A bat.")]


def write_csv(path, *pairs):
    with open(path, "w", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, restval="W1")
        writer.writeheader()
        writer.writerows(pairs)


TOPICS = [
    Topic(f"8-2-{name}", PAIR[name], Atom(PAIR[name]), group="scope edit", metadata={"pair": "8-2"})
    for name in ("q1", "q2")
]


def test_the_official_csv(tmp_path):
    write_csv(tmp_path / "test.csv", PAIR)
    write_csv(tmp_path / "train.csv", {**PAIR, "id": "1-1"})
    dataset = open_dataset(tmp_path)
    assert (dataset.kind, dataset.splits, dataset.collection) == ("nevir", ("train", "test"), None)
    assert dataset.topics("test") == TOPICS
    assert dataset.qrels("test") == QRELS
    assert [(document.docid, document.text) for document in dataset.documents("test")] == DOCUMENTS


def test_json_lines(tmp_path):
    (tmp_path / "dev.jsonl").write_text(json.dumps({**PAIR, "source": "flip"}) + "\n")
    dataset = open_dataset(tmp_path)
    assert dataset.topics("dev") == TOPICS
    assert dataset.qrels("dev") == QRELS
    assert [(document.docid, document.text) for document in dataset.documents("dev")] == DOCUMENTS


HEADER = ",".join(COLUMNS)
ROW = '8-2,W1,a,b,"c\nc",d'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("dev.csv", f"{HEADER}\n{ROW}\n{ROW}", ":4: the pair '8-2' is given twice, first at {path}:2"),
        ("dev.csv", f"{HEADER}\n{ROW}\n9-1,W1,a, ,c,d", ":4: `q2` must be a text that is not blank, got ' '"),
        ("dev.csv", "id,q1,doc1\n8-2,a,c", ":2: no `q2`, `doc2`; expected the fields id, q1, q2, doc1, doc2"),
        ("dev.csv", f"{HEADER}\n1,2", ":2: expected the 6 columns of the first line, found 2"),
        ("dev.csv", f'{HEADER}\n1,w,"a', ":2: broken CSV: unexpected end of data"),
        ("dev.csv", HEADER, ": no pairs"),
        (
            "dev.jsonl",
            '{"q1": "a"}',
            ":1: no `id`, `q2`, `doc1`, `doc2`; expected the fields id, q1, q2, doc1, doc2",
        ),
        (
            "dev.jsonl",
            json.dumps({**PAIR, "id": "a b"}),
            ":1: the pair id 'a b' has white space, which a TREC run cannot hold",
        ),
    ],
)
def test_bad_rows_are_named_by_the_line_where_they_begin(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    assert refusal(open_dataset(tmp_path).topics, "dev") == f"{path}{message}".replace("{path}", str(path))
