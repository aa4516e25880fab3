"""Hits in the order of a field, and the query for all documents, compared with a sort in Python."""

import json
import random

import film_index
import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.baselines import ScoreFusion
from pyserini_compneg.commands.search import main
from pyserini_compneg.compose import All, Linear, Max, from_json
from pyserini_compneg.expression.filters import as_sort
from pyserini_compneg.index import build_index, build_sharded_index, update_index
from pyserini_compneg.search import SearchRequest
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, QueryError

VALUES = [
    1990,
    1990.5,
    -3,
    2**40,
    2**40 + 1,
    "1990",
    "é",
    "z",
    "Z",
    "2001-05",
    True,
    [5, 1],
    ["b", "a"],
    [7, "c"],
    [],
    None,
]
ALL = 200


def documents():
    draw = random.Random(3)
    return [
        {
            "id": f"d{number}",
            "contents": " ".join(["spy"] * draw.randint(0, 3) + ["film"] + ["horse"] * draw.randint(0, 30)),
            "year": draw.choice(VALUES),
        }
        for number in range(ALL)
    ]


DOCUMENTS = documents()
BY_ID = {one["id"]: one for one in DOCUMENTS}


def expected(field, docids):
    """The ids in order: numbers, texts, none; of several values the first in the order, numbers alone if any."""
    name, _, direction = field.partition(":")

    def value(docid):
        given = BY_ID[docid][name]
        listed = given if isinstance(given, list) else [] if given is None else [given]
        numbers = [one for one in listed if isinstance(one, (int, float)) and not isinstance(one, bool)]
        keys = [(0, one, b"") for one in numbers]
        keys = keys or [(1, 0, (str(one).lower() if one is True else one).encode()) for one in listed]
        return (max if direction == "desc" else min)(keys, default=None)

    ordered = sorted(docids)
    known = [docid for docid in ordered if value(docid) is not None]
    known.sort(key=value, reverse=direction == "desc")  # keeps equal ones in their order
    return known + [docid for docid in ordered if value(docid) is None]


@pytest.fixture(scope="module", params=["whole", "updated", "shards", "passages"])
def searcher(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    options = {"filter_fields": ["year"], "store_raw": True}
    match request.param:
        case "whole":
            build_index(DOCUMENTS, folder / "index", **options)
        case "updated":  # several segments, and deleted documents
            build_index([{**DOCUMENTS[0], "id": "old"}, *DOCUMENTS[:120]], folder / "index", **options)
            update_index(folder / "index", DOCUMENTS[120:], ["old"])
        case "shards":
            build_sharded_index(write_jsonl(folder / "c.jsonl", *DOCUMENTS), folder / "index", 3, **options)
        case "passages":
            build_index(DOCUMENTS, folder / "index", passages={"words": 4, "overlap": 1}, **options)
    with SignedImpactSearcher(folder / "index") as opened:
        yield opened


@pytest.mark.parametrize("sort", ["year", "year:desc"])
@pytest.mark.parametrize("query", ["*", "spy", "horse NOT spy"])
def test_hits_are_in_the_order_of_a_field(searcher, query, sort):
    by_score = {hit.docid: hit for hit in searcher.search(query, k=ALL)}
    hits = searcher.search(query, k=ALL, sort=sort)
    assert [hit.docid for hit in hits] == expected(sort, by_score)
    assert hits == [by_score[hit.docid] for hit in hits]  # with their scores, and their best passages
    paged, last = [], None
    while page := searcher.search(query, k=23, sort=sort, after=last):
        paged += page
        last = page[-1]
    assert paged == hits


def test_all_documents(searcher):
    hits = searcher.search("*", k=ALL + 1)
    assert [(hit.docid, hit.score) for hit in hits] == [(docid, 0.0) for docid in sorted(BY_ID)]
    assert len(searcher.search("*", k=7)) == 7
    some = searcher.search("*", k=ALL, filter={"year": "..1990"})
    assert {hit.docid for hit in some} == {
        docid for docid, one in BY_ID.items() if one["year"] in (1990, -3, "1990", [5, 1], [7, "c"])
    }
    assert searcher.score("*", ["d1"]) == [0.0]
    assert searcher.explain("*", "d1").matched
    assert searcher.matches("*").total == (ALL, "eq")


def test_numbers_of_facets_are_numbers(searcher):
    facets = searcher.matches("*", facets={"year": 100}).facets["year"]
    texts = {one for one in facets if isinstance(one, str)}
    assert texts == {"é", "z", "Z", "2001-05", "true", "a", "b", "c"}
    assert {one for one in facets if one not in texts} == {1990, 1990.5, -3, 2**40, 2**40 + 1, 1, 5, 7}
    assert facets[1990] == sum(one["year"] in (1990, "1990") for one in DOCUMENTS)  # one value, as filters take it


def test_ids_are_a_field_to_sort_by(tmp_path):
    with SignedImpactSearcher(film_index.build(tmp_path)) as searcher:
        assert [hit.docid for hit in searcher.search("spy", sort="id:desc")] == ["d3", "d2", "d1"]


def test_what_cannot_be_sorted(searcher):
    said = refusal(searcher.search, "spy", sort="genre", error=IndexFormatError)
    assert "it has no filter field 'genre'" in said
    for wrong in ("year:down", "", "a b", 3):
        said = refusal(searcher.search, "spy", sort=wrong, error=ArgumentError)
        assert said.startswith("sort must be FIELD or FIELD:desc, such as year:desc, got ")
    said = refusal(searcher.search, "spy", sort="year", method=ScoreFusion(), error=ArgumentError)
    assert said == "a method brings its own order; leave out sort, or method"


def test_all_is_a_whole_query():
    assert from_json({"all": True}, "x") == All()
    assert refusal(Max, (All(), Linear({"a": 1.0})), error=QueryError).startswith("the children of a maximum must be")
    assert SearchRequest(queries=["*"], sort="year:asc").sort == as_sort("year")


def test_the_command_sorts_lists_and_json(tmp_path, capsys):
    build_index(DOCUMENTS, tmp_path / "index", filter_fields=["year"])
    asked = ["--index", str(tmp_path / "index"), "--query", "*", "--sort", "year:desc", "--hits", "3"]
    first = expected("year:desc", BY_ID)[:3]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == first
    assert lines[0] == "*"
    assert lines[4] == "  3 of 200 documents; --offset 3 shows the next"
    assert main([*asked, "--output-format", "json"]) == 0
    assert [one["docid"] for one in json.loads(capsys.readouterr().out)["hits"]] == first
    assert main([*asked, "--output-format", "trec"]) == 2
    assert "--sort needs the list of --query, or --output-format json" in capsys.readouterr().err
