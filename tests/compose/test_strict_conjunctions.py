"""AND!: what it requires, and how it is shown. Where it may stand, the tests of NOT! have."""

import json

import pytest
from lookup_encoder import LookupEncoder
from refusals import refusal
from score_oracle import evaluate

from pyserini_compneg.compose import (
    Excluding,
    Linear,
    Operators,
    compose_query,
    from_json,
    is_empty,
    query_terms,
    to_json,
)
from pyserini_compneg.compose.operators import INTERSECTIONS
from pyserini_compneg.expression import (
    parse,
)
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.topics.token_form import stock_obstacle

CHEESES = {
    "swiss cheese": {"swiss": 2.0, "cheese": 1.0},
    "goat cheese": {"goat": 2.0, "cheese": 1.0, "milk": 0.5},
    "cheese": {"cheese": 1.0},
    "wine": {"wine": 3.0, "red": 1.0},
    "dull": {"cheese": -1.0, "wine": 0.0},
    "none": {},
}
ENCODER = LookupEncoder(CHEESES | {letter: {letter: 1.0} for letter in "abcdef"})


def compose(query, **operators):
    chosen = Operators(**{"exclusion": "any", **operators})
    return compose_query(query, ENCODER, chosen, top_scores=lambda nodes, k: [[9.0]] * len(nodes))


@pytest.mark.parametrize(
    ("text", "settings", "required"),
    [
        ("swiss cheese AND! goat cheese", {}, ["swiss", "goat milk"]),
        ("swiss cheese AND! goat cheese", {"cpt_terms": 1}, ["swiss", "goat"]),
        ("cheese AND! goat cheese", {}, ["cheese", "goat milk"]),
        ("cheese AND! cheese", {}, ["cheese"]),
        ("swiss cheese AND! goat cheese AND! wine", {}, ["swiss", "goat milk", "wine red"]),
        ("(swiss cheese OR goat cheese) AND! wine", {}, ["goat swiss cheese milk", "wine red"]),
        ("cheese AND wine AND! goat cheese", {}, ["wine red", "goat milk"]),
        ("cheese AND! goat cheese AND wine", {}, ["cheese", "goat milk"]),
        ("cheese AND! (goat cheese AND! wine)", {}, ["cheese goat milk", "wine red", "cheese", "wine goat red milk"]),
        ("(cheese NOT wine) AND! (goat cheese NOT! wine)", {}, ["cheese", "goat milk"]),
        ("cheese AND! goat cheese NOT wine", {"difference": "damped"}, ["cheese", "goat milk"]),
    ],
)
def test_what_is_required(text, settings, required):
    node = compose(text, **settings)
    assert [set(part.weights) for part in node.required] == [set(terms.split()) for terms in required]
    assert from_json(to_json(node)["score"], "here") == node
    assert node.child == compose(text.replace("AND!", "AND").replace("NOT!", "NOT"), **settings) or "NOT!" in text


def test_how_it_is_written():
    node = compose("cheese AND! goat cheese")
    assert stock_obstacle(node) == (None, "AND!")
    assert stock_obstacle(compose("cheese AND! goat cheese NOT! wine")) == (None, "NOT!")
    required = [{"vector": {"cheese": 100}}, {"vector": {"goat": 100, "milk": 100}}]
    score = to_json(node)["score"]
    assert score == {"excluding": to_json(node.child), "required": required}
    assert query_terms(node) == query_terms(node.child)
    assert json.loads(json.dumps(score)) == score


@pytest.mark.parametrize("unknown", ["none", "dull", "(none OR dull)"])
def test_an_operand_without_a_positive_term_empties_it(unknown, caplog):
    for intersection in INTERSECTIONS[:-1]:
        assert is_empty(compose(f"cheese AND! {unknown}", intersection=intersection))
        assert compose(f"wine OR cheese AND! {unknown}", intersection=intersection) == compose("wine")


def test_an_unknown_operand_is_said(caplog):
    assert is_empty(compose("cheese AND! none"))
    said = "atom 'none' (query 'cheese AND! none'): no term that the encoder knows, so it matches no document"
    assert [record.getMessage() for record in caplog.records] == [said]
    caplog.clear()
    assert is_empty(compose("none AND! none"))
    assert not caplog.records


def test_deep_nesting_takes_no_longer():
    text = "a"
    for _ in range(98):
        text = f"b AND! ({text})"
    assert len(compose(text).required) == 2 * 98


def test_a_node_needs_something_to_leave_out_by():
    said = "above: an excluding node needs excluded parts and a limit for each, got 0 and 0"
    assert refusal(Excluding, Linear({"a": 1.0}), error=QueryError) == said
    assert parse("a AND! b") != parse("a AND b")


@pytest.mark.parametrize("query", ["(a AND! r OR d) NOT (e OR f)", "(a NOT! r OR d) NOT (e OR f)"])
def test_what_not_takes_away_finds_no_document(query):
    """The part of f that is orthogonal to e has a weight above 0 for z."""
    vectors = {"a": "x", "r": "r", "d": "d", "e": "xy", "f": "yz"}
    encoder = LookupEncoder({name: dict.fromkeys(terms, 1.0) for name, terms in vectors.items()})
    node = compose_query(query, encoder, Operators(difference="orthogonal", exclusion="any"))
    assert evaluate(node, {"z": 9.0}) is None
    assert evaluate(node, {"d": 1.0}) is not None
    left_out = {"x": 3.0, "z": 5.0} | ({} if "AND!" in query else {"r": 1.0})
    assert evaluate(node, left_out) is None


def test_the_context_of_a_text_finds_no_document_that_is_left_out():
    encoder = LookupEncoder({name: {name: 1.0} for name in "abrd"})
    expression = parse("(a AND! r OR d) NOT b")
    reading = Decomposition("a text", expression, (), 1.0)
    ask = lambda nodes, k: [[900.0] * k] * len(nodes)  # noqa: E731
    node = compose_query(reading, encoder, top_scores=ask)
    assert evaluate(node, {"a": 1.0}) is None and evaluate(node, {"b": 1.0}) is None
    assert evaluate(node, {"d": 1.0}) is not None
