import csv
import json

import pytest

from pyserini_compneg.datasets import open_dataset
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.expression import Atom

COLUMNS = ["id", "WorkerId", "q1", "q2", "doc1", "doc2"]
PAIR = {"id": "8-2", "q1": "Who (not) flies?", "q2": "Who flies?", "doc1": 'An "emu",\nsay.', "doc2": "A bat."}
QRELS = {"8-2-q1": {"8-2-doc1": 1, "8-2-doc2": 0}, "8-2-q2": {"8-2-doc1": 0, "8-2-doc2": 1}}
DOCUMENTS = [("8-2-doc1", 'An "emu",\nsay.'), ("8-2-doc2", "A bat.")]


def write_csv(path, *pairs, columns=COLUMNS):
    with open(path, "w", newline="") as handle:
        writer = csv.DictWriter(handle, columns, extrasaction="ignore", restval="W1")
        writer.writeheader()
        writer.writerows(pairs)


def refusal(folder, split):
    with pytest.raises(CollectionError) as caught:
        open_dataset(folder).topics(split)
    return str(caught.value)


def topics(**metadata):
    metadata = {"pair": "8-2", **metadata}
    return [Topic(f"8-2-{name}", PAIR[name], Atom(PAIR[name]), metadata=metadata) for name in ("q1", "q2")]


def test_the_official_csv(tmp_path):
    write_csv(tmp_path / "test.csv", PAIR)
    write_csv(tmp_path / "train.csv", {**PAIR, "id": "1-1"})
    dataset = open_dataset(tmp_path)
    assert (dataset.kind, dataset.splits, dataset.collection) == ("nevir", ("train", "test"), None)
    assert dataset.topics("test") == topics()
    assert dataset.qrels("test") == QRELS
    assert [(document.docid, document.text) for document in dataset.documents("test")] == DOCUMENTS


def test_json_lines_say_where_a_pair_is_from(tmp_path):
    (tmp_path / "dev.jsonl").write_text(json.dumps({**PAIR, "source": "flip"}) + "\n")
    dataset = open_dataset(tmp_path)
    assert dataset.topics("dev") == topics(source="flip")
    assert dataset.qrels("dev") == QRELS
    assert [(document.docid, document.text) for document in dataset.documents("dev")] == DOCUMENTS


def test_csv_without_the_columns(tmp_path):
    path = tmp_path / "validation.csv"
    write_csv(path, PAIR, columns=["id", "q1", "doc1"])
    wanted = "expected id,WorkerId,q1,q2,doc1,doc2, found id,q1,doc1"
    assert refusal(tmp_path, "validation") == f"{path}:1: no column q2, doc2; {wanted}"


def test_bad_rows_are_named_by_the_line_where_they_begin(tmp_path):
    path = tmp_path / "dev.csv"
    write_csv(path, PAIR, PAIR)
    assert refusal(tmp_path, "dev") == f"{path}:4: the pair '8-2' is given twice, first at {path}:2"
    write_csv(path, PAIR, {**PAIR, "id": "9-1", "q2": " "})
    assert refusal(tmp_path, "dev") == f"{path}:4: `q2` must be a text that is not blank, got ' '"
    path.write_text(",".join(COLUMNS) + "\n1,2\n")
    assert refusal(tmp_path, "dev") == f"{path}:2: expected the 6 columns of the first line, found 2"
    path.write_text(",".join(COLUMNS) + '\n1,w,"a\n')
    assert refusal(tmp_path, "dev") == f"{path}:2: broken CSV: unexpected end of data"
    path.write_text(",".join(COLUMNS) + "\n")
    assert refusal(tmp_path, "dev") == f"{path}: no pairs"


def test_bad_lines(tmp_path):
    path = tmp_path / "dev.jsonl"
    path.write_text('{"q1": "a"}\n')
    assert refusal(tmp_path, "dev") == f"{path}:1: no `id`; expected the fields id, q1, q2, doc1, doc2"
    path.write_text('{"q1": "a", "id": "a b"}\n')
    assert refusal(tmp_path, "dev") == f"{path}:1: the pair id 'a b' has white space, which a TREC run cannot hold"


def test_no_files(tmp_path):
    with pytest.raises(CollectionError) as caught:
        open_dataset(tmp_path, "nevir")
    assert str(caught.value) == (
        f"{tmp_path}: no pairs; the kind nevir needs train, validation, val, dev, test, each .csv or .jsonl"
    )
