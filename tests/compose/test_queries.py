import logging

import pytest
from lookup_encoder import LookupEncoder, letters
from refusals import refusal

from pyserini_compneg.compose import All, Linear, Operators, Product, Sum, compose_queries, compose_query, query_pairs
from pyserini_compneg.expression import Atom, Union, parse
from pyserini_compneg.support.errors import EncodingError, QueryError

ENCODER = LookupEncoder({"a": {"p": 4.0, "s": 0.5}, "b": {"q": 1.0}, "c": {"x": 0.123}, **letters(d="r")})
CPT = Operators(intersection="cpt", difference="disentangled")


def test_text_tree_and_composed_query():
    whole = Linear({"p": 400.0, "s": 50.0, "x": -12.0})
    assert compose_query("a NOT c", ENCODER, CPT) == compose_query(parse("a NOT c"), ENCODER, CPT) == whole
    fractions = Linear({"p": 0.001, "a∩b": 0.5, "¬p": -1.0})
    assert compose_query(fractions, None, cpt="materialised", signed=True) is fractions
    assert compose_queries([fractions, "b", fractions], ENCODER) == [fractions, Linear({"q": 100.0}), fractions]
    assert compose_queries([], None) == []


def test_the_pairs_of_queries():
    """Those of ``cpt`` and ``cpt-maxpool``, of every AND that is wanted; a composed query has its own."""
    encoder = LookupEncoder(
        {"a": {"p": 4.0, "s": 0.5}, "b": {"q": 1.0, "s": 1.0}, "c": {"x": 0.1}, **letters(d="uvwxyz")}
    )
    pairs = "p∩q", "p∩s", "q∩s"
    queries = ["a AND b", "c OR (a AND b)", "a AND b NOT (c AND d)", "a AND! b NOT! d", parse("a AND b")]
    for query in queries:
        assert query_pairs([query], encoder) == pairs
    assert encoder.batches == [["a", "b"], ["c", "a", "b"], ["a", "b"], ["a", "b"], ["a", "b"]]
    assert query_pairs(["d", "a OR b"], encoder) == ()
    crossed = {f"{x}∩{y}" for x, y in ["pq", "ps", "qs", "px", "sx", "qx"]}
    assert query_pairs(["a AND b AND c"], encoder) == tuple(sorted(crossed - {"p∩s", "q∩s", "s∩x"}))
    assert len(query_pairs(["c AND d", "a AND d"], encoder)) == 4 + 2 * 5
    composed = Product(({"p": 1.0}, {"p": 2.0, "q": 1.0})), Linear({"a∩b": 1.0, "z": 1.0}), Product(({"p": 1.0},) * 3)
    assert query_pairs(composed) == ("a∩b", "p∩q")
    assert refusal(query_pairs, ["a AND b"], error=EncodingError) == "no encoder for 'a AND b'; name one"


def test_unknown_atoms_are_one_warning_unless_their_query_finds_nothing(caplog):
    queries = ["a NOT fisch", "a AND suop", "zebra NOT a", "suop", "a OR (b NOT fisch)", "c"]
    encoder = LookupEncoder({"a": {"p": 4.0}, "b": {"q": 1.0}, "c": {"r": 1.0}})
    compose_queries(queries, encoder, Operators(difference="disentangled"))
    assert caplog.messages == [
        "2 of 6 atoms, such as 'fisch' (query 'a NOT fisch'): no term that the encoder knows, so it matches no document"
    ]


TINY = LookupEncoder({"b": {"q": 0.01}, "e": {"r": 0.01}})


def test_the_weights_of_pairs_are_products_of_rounded_ones():
    assert compose_query("a AND b", ENCODER, CPT) == Product(({"p": 400.0, "s": 50.0}, {"q": 100.0}))
    assert compose_query("a AND b", ENCODER, CPT, cpt="materialised", pair_scale=1) == Linear(
        {"p∩q": 200.0, "q∩s": 71.0}
    )
    assert compose_query("a AND b NOT c", ENCODER, CPT, cpt="materialised", weight_scale=10, pair_scale=1) == Linear(
        {"p∩q": 20.0, "q∩s": 7.0, "x": -1.0}
    )
    fine = {"p∩q": 200 / 8, "q∩s": round(8 * 5000**0.5) / 64, "x": -12.0}
    assert compose_query("a AND b NOT c", ENCODER, CPT, cpt="materialised") == Linear(fine)
    assert compose_query("b AND e", TINY, cpt="materialised", pair_scale=1) == Linear(
        {"q": 1.0, "r": 1.0, "q∩r": 1.0}  # a pair finds documents, so its weight never becomes 0
    )
    assert compose_query("a AND b NOT c", ENCODER, CPT, signed=True) == Sum(
        (Product(({"p": 400.0, "s": 50.0}, {"q": 100.0})), Linear({"x": -12.0, "¬x": 12.0}))
    )


@pytest.mark.parametrize(
    ("query", "settings", "message"),
    [
        ("a AND b AND d", {"operators": CPT, "cpt": "materialised"}, "pseudo-terms are pairs, "),
        ("a", {"weight_scale": 1e9}, "the weight of 'p' becomes 4e+09 at weight scale 1e+09, "),
    ],
)
def test_what_cannot_be_run_names_the_query(query, settings, message):
    refused = refusal(compose_query, query, ENCODER, **settings, error=QueryError)
    assert refused.startswith(f"query {query!r}: {message}")


@pytest.mark.parametrize("term", ["a∩b", "¬a"])
def test_reserved_terms(term):
    with pytest.raises(EncodingError) as error:
        compose_query("e", LookupEncoder({"e": {term: 1.0}}))
    reserved = "is reserved, a∩b for pairs and ¬t for complements; leave it out"
    assert str(error.value) == f"atom 'e': the term {term!r} {reserved}"


@pytest.mark.parametrize("query", ["*", "(*)", Atom("*")])
def test_all_documents(query):
    assert compose_query(query, None) == All()


@pytest.mark.parametrize("query", ["* NOT a", "a OR *", "a AND (b OR (*))", Union((Atom("a"), Atom("*")))])
def test_all_documents_are_no_part_of_a_query(query):
    said = refusal(compose_query, query, ENCODER, error=QueryError)
    assert said.startswith("* means all documents as a whole query, and is no part of ")
    assert said.endswith("; write the expression without it, or use a filter")
    assert "\n" not in said


def test_lone_signs_are_words():
    assert compose_query("e", LookupEncoder({"e": {"∩": 1.0, "¬": 2.0}})) == Linear({"∩": 100.0, "¬": 200.0})


def test_no_encoder():
    assert refusal(compose_query, "a NOT b", None, error=EncodingError) == "no encoder for 'a NOT b'; name one"


def test_a_query_below_the_scale_is_worth_a_warning(caplog):
    tiny = LookupEncoder({"a": {"p": 0.004, "q": 0.001}, "b": {"r": 1.0}})
    assert compose_query("a", tiny) == Linear({"p": 1.0})
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            logging.WARNING,
            "query 'a': all weights round to 0 at weight scale 100, so the heaviest count 1; raise --weight-scale",
        )
    ]
    caplog.clear()
    compose_queries(["a OR b", "a AND b", "zebra"], tiny)
    assert caplog.records == []
    compose_queries(["a", "b", "a OR a"], tiny)
    assert caplog.messages == [
        "2 of 3 queries, such as 'a': all weights round to 0 at weight scale 100, so the heaviest count 1; "
        "raise --weight-scale"
    ]
