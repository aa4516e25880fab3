import json
import math

import pytest
from hypothesis import example, given
from refusals import refusal
from scoring_strategies import nodes

from pyserini_compneg.compose import Linear, Max, Product, Sum, composed_line, from_json, to_json
from pyserini_compneg.expression import MAX_DEPTH
from pyserini_compneg.support.errors import QueryError


def read_back(line):
    fields = json.loads(line)
    return from_json(fields["score"] if "score" in fields else {"vector": fields["vector"]}, "here")


@given(nodes())
@example(Linear({"a": 0.1, "b": 1e18, "c": -1e-18, "d": 1 / 3}))
def test_round_trip(node):
    line = composed_line("q1", "a AND b", node)
    assert "\n" not in line
    assert read_back(line) == node


def test_written_form():
    node = Max((Sum((Product(({"a": 1.0}, {"b": 2.5})), Linear({"x": -3.0}))), Linear({})))
    product = {"product": [{"vector": {"a": 1}}, {"vector": {"b": 2.5}}]}
    assert to_json(node) == {"score": {"max": [{"sum": [product, {"vector": {"x": -3}}]}, {"vector": {}}]}}
    assert to_json(Linear({})) == {"vector": {}}


def test_powers_and_roots_are_written_where_they_are_not_those_of_pseudo_terms():
    operands = {"a": 1.0}, {"b": 2.0}
    written = {"product": [{"vector": {"a": 1}}, {"vector": {"b": 2}}]}
    assert to_json(Product(operands, 0.5)) == {"score": written}
    assert to_json(Product(operands, 1.0)) == {"score": {**written, "power": 1}}
    assert to_json(Product(operands, 0.7, 2)) == {"score": {**written, "power": 0.7, "root": 2}}
    assert to_json(Product(operands, weight=-2.5)) == {"score": {**written, "weight": -2.5}}
    assert from_json({**written, "power": 0.5, "root": 1, "weight": 1}, "here") == Product(operands)
    assert from_json({**written, "weight": -1e-40}, "here") == Product(operands, weight=-1e-40)


KEYS = "a score must be an object with vector, product, max, sum, damped or excluding"
EXACT = "between 1e-18 and 1e+18 in magnitude, the limits of exact arithmetic"
A = {"vector": {"a": 1}}
DAMPED = {"damped": A, "excluded": [A], "best": [2], "weight": 1}
REQUIRING = {"excluding": A, "required": [A]}
PART = "an excluded part must be an object with vector, product, damped or filter"
PARTS = "expected a list of one or more vectors or products"
POWER = "$.power: the power of 2 operands must be above 0 and at most 1"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, f"$: {KEYS}, got None"),
        ({}, f"$: {KEYS}, got {{}}"),
        ({"min": [A]}, f"$: {KEYS}, got {{'min': [{{'vector': {{'a': 1}}}}]}}"),
        ({"max": 1, "sum": 2}, "$: a maximum has no 'sum', only max"),
        ({"vector": [1]}, "$.vector: expected an object of terms and weights, got [1]"),
        ({"vector": {"a": math.nan}}, "$.vector: the weight of 'a' must be a finite number, got nan"),
        ({"vector": {"a": 10**30}}, f"$.vector: the weight of 'a' must be {EXACT}, got 1e+30"),
        ({"product": [A]}, "$.product: expected a list of two or more vectors, got [{'vector': {'a': 1}}]"),
        (
            {"product": [A, {"max": []}]},
            "$.product[1]: an operand of a product must be an object with vector, got {'max': []}",
        ),
        ({**DAMPED, "damped": 5}, f"$.damped: {KEYS}, got 5"),
        (
            {**DAMPED, "excluded": [A, {"max": [A]}]},
            f"$.excluded[1]: {PART}, got {{'max': [{{'vector': {{'a': 1}}}}]}}",
        ),
        ({**DAMPED, "excluded": A}, f"$.excluded: {PARTS}, got {{'vector': {{'a': 1}}}}"),
        ({**DAMPED, "best": 2}, "$.best: expected a list of one or more scores, of the excluded parts, got 2"),
        ({**REQUIRING, "required": []}, "$.required: expected a list of one or more vectors, got []"),
        (
            {**REQUIRING, "required": [{"product": [A, A]}]},
            "$.required[0]: a required part must be an object with vector, "
            "got {'product': [{'vector': {'a': 1}}, {'vector': {'a': 1}}]}",
        ),
        ({**REQUIRING, "required": [{"vector": {}}]}, "$.required: each part must be a vector of positive weights"),
        ({"excluding": A}, "$: what excludes needs 'above', only excluding, excluded, above, required"),
        (
            {"product": [A, {"vector": {"b": -1}}]},
            "$.product[1].vector: the weight of 'b' in a product must be positive, got -1.0",
        ),
        ({"product": [A, A], "p": 1}, "$: a product has no 'p', only product, power, root, weight"),
        ({"product": [A, A], "power": None}, "$.power: expected a number, got nothing; without the key it is 1/n"),
        ({"product": [A, A], "power": 2}, f"{POWER}, got 2"),
        (
            {"sum": [{"product": [A, A], "root": 0.5}]},
            "$.sum[0].root: the root must be a whole number from 1 to 16, got 0.5",
        ),
        (
            {"product": [A, A], "weight": 0},
            "$.weight: the weight of a product must be between 1e-288 and 1e+18 in magnitude, got 0",
        ),
        ({"max": []}, "$.max: expected a list of one or more scores, got []"),
    ],
)
def test_what_is_no_scoring_tree_is_refused(value, message):
    assert refusal(from_json, value, "queries.jsonl:3", error=QueryError) == f"queries.jsonl:3: {message}"


def test_depth_is_limited():
    value = A
    for _ in range(MAX_DEPTH - 1):
        value = {"max": [value]}
    from_json(value, "here")
    assert (
        refusal(from_json, {"max": [value]}, "here", error=QueryError)
        == "here: the score is more than 100 levels deep; flatten it"
    )
