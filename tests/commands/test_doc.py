"""What ``doc`` shows of the documents of an index."""

import json
import random

import pytest
from film_index import FILMS
from impact_indexes import write_index, write_stock_index
from json_lines import write_jsonl

from pyserini_compneg.index import ImpactIndexer, build_index, build_sharded_index
from pyserini_compneg.lucene import open_reader


def objects(lines):
    return [json.loads(line) for line in lines]


def test_sources_in_the_order_of_the_ids(run, index, tmp_path):
    asked = ["d6", "d1", "d6"]
    expected = [{"id": docid, "title": FILMS[docid][0], "text": FILMS[docid][1]} for docid in asked]
    assert objects(run("doc --index {films}", *asked).lines) == expected
    assert run("doc --index {films}", *asked, "--output", tmp_path / "films.jsonl").out == ""
    assert objects((tmp_path / "films.jsonl").read_text().splitlines()) == expected


@pytest.mark.parametrize("stored", [True, False])
def test_vectors_equal_what_was_indexed(run, tmp_path, stored):
    """In several segments, with deleted documents or in shards, with stored vectors or without."""
    choice, terms = random.Random(5), [f"t{i}" for i in range(60)]
    documents = {
        f"d{i}": {term: choice.randint(1, 300) for term in choice.sample(terms, choice.randint(1, 20))}
        for i in range(300)
    }
    vectors = write_jsonl(tmp_path / "v.jsonl", *({"id": docid, "vector": v} for docid, v in documents.items()))
    build_index(vectors, tmp_path / "whole", "m", store_docvectors=stored)
    build_sharded_index(vectors, tmp_path / "sharded", 3, "m", store_docvectors=stored)
    halves = dict(list(documents.items())[:150]), dict(list(documents.items())[150:])
    write_index(tmp_path / "deleted", *halves, deleted=["d7", "d200"])
    for name in ("whole", "sharded", "deleted"):
        docids = [docid for docid in documents if name != "deleted" or docid not in ("d7", "d200")]
        run(f"doc --index {tmp_path / name} --vector --output {tmp_path / name}.jsonl", *docids)
        shown = objects((tmp_path / f"{name}.jsonl").read_text().splitlines())
        assert {one["id"]: one["vector"] for one in shown} == {docid: documents[docid] for docid in docids}
        assert all(list(v["vector"].values()) == sorted(v["vector"].values(), reverse=True) for v in shown)
    with open_reader(tmp_path / "sharded") as reader:
        assert reader.vector("nothing") is None


def test_an_id_of_several_documents(run, tmp_path, capfd):
    """Anserini indexes each of them. ``doc`` shows the first and says so, and the check finds no damage."""
    documents = [("d1", {"spy": 3}), ("d2", {"war": 1}), ("d1", {"spy": 9}), ("d1", {"owl": 1})]
    stock = write_stock_index(tmp_path / "stock", documents)
    capfd.readouterr()  # the log of Anserini
    shown = run(f"doc --index {stock} --vector d2 d1")
    assert objects(shown.lines) == [{"id": "d2", "vector": {"war": 1}}, {"id": "d1", "vector": {"spy": 3}}]
    said = "several documents have the same id, such as 'd1': the first of each id is shown"
    assert shown.told == [f"{stock}: {said}"]
    assert run(f"doc --index {stock} --vector d2").told == []
    said = "2 of 4 documents have the id of an earlier one: a ranking has the best document of each id"
    assert run(f"index --verify {stock}").told == [f"{stock}: {said}"]


def test_documents_of_other_programs(run, tmp_path, capfd):
    """Anserini stores the source as it reads it; other programs may store anything."""
    stock = write_stock_index(tmp_path / "stock", {"d1": {"spy": 3, "é": 1}})
    capfd.readouterr()  # the log of Anserini
    assert objects(run(f"doc --index {stock} --vector d1").lines) == [{"id": "d1", "vector": {"spy": 3, "é": 1}}]
    with ImpactIndexer(tmp_path / "index", "m", store_raw=True, signed=True, pair_terms=2) as indexer:
        for docid, raw in {"d1": '{"id":\n 1}', "d2": "a spy", "d3": "[1]"}.items():
            line = json.dumps({"id": docid, "vector": {"a": 4, "b": -9, "c": 9}}).encode()
            indexer.add_lines(line, "f", 1, raw.encode())
    lines = objects(run(f"doc --index {tmp_path / 'index'} d2 d3").lines)
    assert lines == [{"id": "d2", "raw": "a spy"}, {"id": "d3", "raw": "[1]"}]
    (signed,) = objects(run(f"doc --index {tmp_path / 'index'} --vector d2").lines)
    assert signed["vector"] == {"c": 9, "¬b": 9, "a∩c": 8 * 6, "a": 4}


def test_what_cannot_be_shown(run, index, tmp_path):
    unknown = run("doc --index {films} d1 d9", code=2)
    assert (unknown.out, unknown.err) == ("", f"error: {index} has no document 'd9'\n")
    bare = write_index(tmp_path / "bare", {"d1": {"spy": 3}})
    said = "the source of 'd1' is not stored; index --store-raw stores it; --vector shows the terms"
    assert run(f"doc --index {bare} d1", code=2).err == f"error: {bare}: {said}\n"
