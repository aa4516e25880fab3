"""AND!: what it requires, and how it is shown. Where it may stand, the tests of NOT! have."""

import json
import logging

import pytest
from expression_strategies import expressions
from hypothesis import given
from hypothesis import strategies as st
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg.compose import (
    Excluding,
    Linear,
    Operators,
    compose_query,
    evaluate,
    from_json,
    is_empty,
    query_terms,
    to_json,
)
from pyserini_compneg.compose.operators import INTERSECTIONS
from pyserini_compneg.compose.rewrite import without_differences
from pyserini_compneg.expression import (
    Atom,
    Difference,
    Exclusion,
    Expression,
    Filter,
    Intersection,
    Union,
    atoms,
    format_expression,
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
NAMED = [{"named": ["yes"]}, {}]


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


@pytest.mark.parametrize("intersection", [name for name in INTERSECTIONS if name != "vanilla"])
@pytest.mark.parametrize("text", ["{} AND! {}", "wine OR {} AND! {}", "{} AND! {} NOT wine", "({} AND! {}) AND wine"])
def test_scores_are_those_of_and(text, intersection):
    strict, soft = (
        compose(
            text.format("swiss cheese", "goat cheese").replace("AND!", sign),
            union="addition",
            intersection=intersection,
        )
        for sign in ("AND!", "AND")
    )
    both = {"swiss": 3.0, "milk": 2.0, "cheese": 1.0, "red": 1.0, "wine": 1.0}
    assert evaluate(strict, both) == evaluate(soft, both) is not None
    for document in ({"swiss": 3.0, "cheese": 2.0}, {"goat": 1.0, "cheese": 2.0}, {"cheese": 9.0}):
        assert evaluate(strict, document) is None


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


def finds(expression: Expression, document, named, in_and=False) -> bool:
    """As the definitions have it, where NOT is ignored and each atom is a term of its own."""
    match expression:
        case Atom(text):
            return text in document
        case Union(operands):
            if in_and:
                return not document.isdisjoint(atoms(without_differences(expression)))
            return any(finds(operand, document, named) for operand in operands)
        case Intersection(operands, strict=strict):
            found = [finds(operand, document, named, in_and=True) for operand in operands]
            if not strict:
                return any(found) and all(clean(operand, document, named) for operand in operands)
            terms = [set(atoms(without_differences(operand))) for operand in dict.fromkeys(operands)]
            own = [one.difference(*terms[:i], *terms[i + 1 :]) or one for i, one in enumerate(terms)]
            return all(document & one for one in own) and all(clean(operand, document, named) for operand in operands)
        case Difference(left, _):
            return finds(left, document, named, in_and)
        case Exclusion(left, _):
            return finds(left, document, named, in_and) and not named


def clean(expression: Expression, document, named) -> bool:
    """Whether every AND! and NOT! among the parts of a conjunction lets a document through."""
    match expression:
        case Intersection(operands, strict=strict):
            return (not strict or finds(expression, document, named)) and all(
                clean(operand, document, named) for operand in operands
            )
        case Difference(left, _):
            return clean(left, document, named)
        case Exclusion(left, _):
            return clean(left, document, named) and not named
    return True


LETTERS = st.sampled_from("abcdef")
WANTED = st.recursive(
    expressions(LETTERS, max_leaves=3),
    lambda parts: (
        st.lists(parts, min_size=2, max_size=3).map(lambda some: Intersection(tuple(some), strict=True))
        | st.lists(parts, min_size=2, max_size=3).map(lambda some: Union(tuple(some)))
        | st.lists(parts, min_size=2, max_size=3).map(lambda some: Intersection(tuple(some)))
        | st.builds(Exclusion, parts, st.just(Filter({"named": "yes"})))
        | st.builds(Difference, parts, LETTERS.map(Atom))
    ),
    max_leaves=5,
)


@given(WANTED, st.lists(st.frozensets(LETTERS), min_size=1, max_size=10))
def test_documents_are_found_as_sets_have_it(expression, documents):
    """Or the expression is refused: no AND! is ever ignored."""
    operators = Operators(intersection="maxpool", difference="ignore", exclusion="any", cpt_terms=50)
    logging.disable()
    try:
        node = compose_query(expression, ENCODER, operators)
    except QueryError as error:
        assert "cannot stand in" in str(error)
        return
    finally:
        logging.disable(logging.NOTSET)
    for document in documents:
        for fields in NAMED:
            found = evaluate(node, dict.fromkeys(document, 1.0), fields) is not None
            assert found == finds(expression, document, bool(fields))


@given(WANTED, st.sampled_from(INTERSECTIONS[:-1]), st.sampled_from(["damped", "disentangled", "ignore"]))
def test_a_document_that_has_every_term_scores_as_with_and(expression, intersection, difference):
    """With ``addition``, which adds up vectors and scores alike."""

    def score(asked):
        operators = Operators("addition", intersection, difference, exclusion="any", cpt_terms=50)
        node = compose_query(asked, ENCODER, operators, top_scores=lambda nodes, k: [[9.0]] * len(nodes))
        return evaluate(node, dict.fromkeys("abcdef", 2.0))

    logging.disable()
    try:
        soft = score(format_expression(expression).replace("AND!", "AND"))
        assert score(expression) == (soft if soft is None else pytest.approx(soft))
    except QueryError as error:
        assert "cannot stand in" in str(error)
    finally:
        logging.disable(logging.NOTSET)


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
