"""Which operands of AND a document lacks, against the documents themselves."""

import random

import pytest
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from pair_index import write
from refusals import refusal

from pyserini_compneg.compose import INTERSECTIONS, Linear, Operators
from pyserini_compneg.encode.hybrid import PREFIX, HybridQueryEncoder
from pyserini_compneg.expression import parse
from pyserini_compneg.index import build_sharded_index
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.search import SearchRequest, SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError

TERMS = "opqrstuvwxyz"

QUERIES = {
    "a AND b": [{"a": "a", "b": "b"}],
    "a AND b NOT c": [{"a": "a", "b": "b"}],
    "(a NOT d) AND b AND c": [{"a": "a", "b": "b", "c": "c"}],
    "a AND b OR c AND d": [{"a": "a", "b": "b"}, {"c": "c", "d": "d"}],
    "c AND d OR (a AND b OR b AND c AND d)": [
        {"c": "c", "d": "d"},
        {"a": "a", "b": "b"},
        {"b": "b", "c": "c", "d": "d"},
    ],
    "(a OR b NOT d) AND c": [{"a OR b NOT d": "ab", "c": "c"}],
    "a AND zebra": [{"a": "a", "zebra": ""}],
    "a AND all": [{"a": "a", "all": "+"}],
    "a AND b AND a": [{"a": "a", "b": "b"}],
    "a AND! b OR c AND d": [{"a": "a", "b": "b"}, {"c": "c", "d": "d"}],
}
"""For each query its alternatives, with the atoms of each operand."""

WITHOUT_AND = ["a", "a AND! b", "a OR b", "a NOT b", "a NOT (b AND c)", "a AND b OR c", "a NOT! (b AND c)"]


def vectors(seed, names, terms):
    choice = random.Random(seed)
    return {
        name: {term: choice.choice([-3, 1, 2, 3, 4]) for term in choice.sample(TERMS, choice.randint(*terms))}
        for name in names
    }


DOCUMENTS = vectors(1, [f"d{number:02}" for number in range(60)], (0, 4))
ATOMS = {**vectors(2, "abcd", (7, 8)), "+": dict.fromkeys(TERMS, 1), "zebra": {}, "": {}}
ATOMS["all"] = ATOMS["+"]
DOCIDS = sorted(DOCUMENTS)


@pytest.fixture(scope="module", params=["plain", "signed", "shards"])
def searcher(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lacking") / request.param
    unsigned = {docid: {t: impact for t, impact in one.items() if impact > 0} for docid, one in DOCUMENTS.items()}
    if request.param == "shards":
        lines = ({"id": docid, "vector": impacts} for docid, impacts in unsigned.items())
        build_sharded_index(write_jsonl(folder / "d.jsonl", *lines), folder / "index", 3, encoder="letters")
    elif request.param == "signed":
        write(folder / "index", DOCUMENTS, signed=True)
    else:
        write(folder / "index", unsigned)
    with SignedImpactSearcher(folder / "index", LookupEncoder(ATOMS)) as searcher:
        yield searcher


def lacking(document, parts, top):
    """The operands of an alternative that a document lacks, as it is defined."""
    weights = {
        name: {t: max(ATOMS[atom].get(t, 0) for atom in texts or [""]) for t in TERMS} for name, texts in parts.items()
    }
    held = {name: {t for t, weight in one.items() if weight > 0} for name, one in weights.items()}
    lacked = []
    for name, one in held.items():
        own = one.difference(*(other for key, other in held.items() if key != name)) or one
        heaviest = sorted(own, key=lambda t: (-weights[name][t], t))[:top]
        if not any(document.get(t, 0) > 0 for t in heaviest):
            lacked.append(name)
    return tuple(lacked)


@pytest.mark.parametrize("top", [1, 2, 5])
@pytest.mark.parametrize("query", QUERIES)
def test_what_documents_lack(searcher, query, top):
    found = searcher.lacking(query, DOCIDS, operators=Operators(cpt_terms=top))
    expected = [min((lacking(DOCUMENTS[docid], parts, top) for parts in QUERIES[query]), key=len) for docid in DOCIDS]
    assert found == expected
    assert len(set(found)) > 1


def test_what_and_requires_is_not_lacking(searcher):
    """Its terms among two operands may be others than among three, and a hit has them."""
    for query, operand in (
        ("a AND! b AND c", "c"),
        ("c AND (a AND! b)", "c"),
        ("a AND! b AND! c AND d", "d"),
        ("(a NOT d) AND! b AND c", "c"),
    ):
        found = searcher.lacking(query, DOCIDS)
        soft = searcher.lacking(query.replace("!", ""), DOCIDS)
        assert found == [tuple(name for name in lacks if name == operand) for lacks in soft]
        assert set(found) == {(), (operand,)}


@pytest.mark.parametrize("query", WITHOUT_AND)
def test_without_and_nothing_is_lacking(searcher, query):
    assert searcher.lacking(query, DOCIDS) == [()] * len(DOCIDS)
    assert searcher.lacking(Linear({"o": 1.0}), DOCIDS) == [()] * len(DOCIDS)


def test_vanilla_is_no_and(searcher):
    for name in INTERSECTIONS:
        found = searcher.lacking("a AND b", DOCIDS, operators=Operators(intersection=name))
        assert any(found) == (name != "vanilla")


def test_a_batch_is_its_queries(searcher):
    reading = Decomposition("a and b", parse("a AND b"), (), 0.9)
    queries = [*QUERIES, *WITHOUT_AND, reading, Linear({"o": 1.0})]
    docids = [DOCIDS[place:] for place in range(len(queries))]
    alone = [searcher.lacking(query, some) for query, some in zip(queries, docids, strict=True)]
    answers = searcher.answers(SearchRequest(queries=queries, k=99, threads=2, lacks=True))
    found = [dict(zip([hit.docid for hit in one.hits], one.lacks, strict=True)) for one in answers]
    for known, some, lacks in zip(found, docids, alone, strict=True):
        assert all(known.get(docid, own) == own for docid, own in zip(some, lacks, strict=True))
    assert any(any(one.lacks) for one in answers)
    assert searcher.lacking(reading, DOCIDS) == searcher.lacking("a AND b", DOCIDS)
    assert searcher.answers(SearchRequest(queries=[], lacks=True)) == []


def test_a_document_that_is_not_there_lacks_all(searcher):
    assert searcher.lacking("a AND b", ["none"]) == [("a", "b")]
    said = "docids must be texts, got 7"
    assert refusal(searcher.lacking, "a AND b", [7], error=ArgumentError) == said


def test_an_answer_encodes_each_text_once(tmp_path):
    index = write(tmp_path / "index", {"d": {"o": 1}})
    encoder = LookupEncoder({"a": {"o": 1.0}, "b": {"p": 1.0}})
    with SignedImpactSearcher(index, encoder) as searcher:
        (answer,) = searcher.answers(SearchRequest(queries=["a AND b"], lacks=True))
        assert answer.lacks == [("b",)]
        assert encoder.batches == [["a", "b"]]


def test_the_model_of_a_hybrid_index_does_not_count(tmp_path):
    documents = {"d1": {"goat": 3, "swiss": 2}, "d2": {"@goat": 1, "swiss": 1}, "d3": {"swiss": 9}}
    bm25 = LookupEncoder({"Swiss": {"swiss": 1.0}, "goat": {"goat": 1.0}})
    model = LookupEncoder({"Swiss": {"swiss": 1.0}, "goat": {"goat": 1.0, "kid": 0.5}})
    encoder = HybridQueryEncoder(bm25, {PREFIX: (model, 0.2)})
    with SignedImpactSearcher(write(tmp_path / "index", documents), encoder) as searcher:
        assert searcher.lacking("Swiss AND goat", ["d1", "d2", "d3"]) == [(), ("goat",), ("goat",)]
        assert [hit.docid for hit in searcher.search("Swiss AND! goat")] == ["d1"]
        assert [hit.docid for hit in searcher.search("Swiss NOT! goat")] == ["d3", "d2"]
