"""Highlights are the words of the stored texts whose terms add to a score, or take from it, and nothing else."""

import json
import re

import pytest
from json_lines import write_jsonl
from refusals import refusal
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.explaining import highlights
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import analyze
from pyserini_compneg.support.errors import InputError

QUERY = "spy drama AND goats NOT comedies"
SOURCES = [
    {"id": "spy", "title": "Spies 😀 spy", "text": "A spy's comedy.\nNo COMEDIES, 𝒮py or goat-spies; spying é spy_"},
    {"id": "a", "text": "goats", "tags": ["spy", {"a/b~c": "a drama", "year": 1999}], "vector": {"spy": 1}},
    {"id": "b", "contents": "western comedy of a drama"},
    {"id": "c", "text": "goat " * 3},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("highlights")
    build_index(write_jsonl(folder / "c.jsonl", *SOURCES), folder / "index", encoder="bm25", store_raw=True)
    return folder / "index"


@pytest.fixture(scope="module")
def searcher(index):
    with SignedImpactSearcher(index) as searcher:
        yield searcher


def at(source, pointer):
    """What a JSON Pointer names."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        source = source[int(name)] if isinstance(source, list) else source[name]
    return source


def texts(value, pointer=""):
    if isinstance(value, str):
        yield pointer
    for name, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from texts(part, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source["id"])
def test_each_word_is_marked_by_what_its_terms_add(searcher, source):
    amounts = {}
    for term, amount in searcher.explain(QUERY, source["id"]).contributions:
        for single in term.split("∩"):
            amounts[single] = amounts.get(single, 0) + amount
    wanted = {}
    for pointer in texts({name: value for name, value in source.items() if name not in ("id", "vector")}):
        for word in re.finditer(r"\w+", at(source, pointer)):
            (terms,) = analyze([word[0]])
            if amount := sum(amounts.get(term, 0) for term in set(terms)):
                wanted[pointer, *word.span()] = amount
    found = highlights(searcher, QUERY, source["id"])
    assert {(one.field, one.start, one.end): pytest.approx(one.amount) for one in found} == wanted
    assert len(found) == len(wanted) > 0
    assert {one.amount > 0 for one in found} == ({True, False} if source["id"] in ("spy", "b") else {True})
    words = {at(source, one.field)[one.start : one.end] for one in found}
    assert words <= {"Spies", "spy", "comedy", "COMEDIES", "goat", "goats", "spies", "spying", "drama"}


def test_the_server_gives_the_same(index, searcher):
    with make_client(index) as client:
        asked = {"query": QUERY, "highlight": "true"}
        answer = client.get("/v1/films/search", params=asked).json()
        assert {one["docid"] for one in answer["candidates"]} == {source["id"] for source in SOURCES}
        for one in answer["candidates"]:
            wanted = [found._asdict() for found in highlights(searcher, QUERY, one["docid"])]
            assert one["highlights"] == json.loads(json.dumps(wanted))
            assert "contributions" not in one
        cut = client.get("/v1/films/search", params={**asked, "max_doc_length": 2, "explain": "true"}).json()
        assert [one["highlights"] for one in cut["candidates"]] == [one["highlights"] for one in answer["candidates"]]
        assert "highlights" not in client.get("/v1/films/search", params={"query": QUERY}).json()["candidates"][0]


@pytest.mark.parametrize(
    ("language", "text", "marked"),
    [
        ("en", "cafe\u0301 CAFE\u0301 cafe", ["cafe\u0301", "CAFE\u0301"]),
        ("hi", "यह किताब है।", ["किताब"]),
        ("sw", "Habari ya dunia", ["Habari"]),
        ("tr", "Irak ile IRAK", ["Irak", "IRAK"]),
    ],
)
def test_words_of_other_languages(tmp_path, language, text, marked):
    """Marks belong to the letter before them, and an analyzer sees upper case."""
    source = write_jsonl(tmp_path / "c.jsonl", {"id": "d", "contents": text})
    build_index(source, tmp_path / "index", encoder="bm25", bm25={"language": language}, store_raw=True)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        found = highlights(searcher, marked[0], "d")
    assert [text[one.start : one.end] for one in found] == marked


def test_no_such_document(index, searcher):
    assert refusal(highlights, searcher, "spy", "x", error=InputError) == f"{index} has no document 'x'"
