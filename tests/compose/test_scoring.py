import math

import pytest
from hypothesis import given
from refusals import refusal
from score_oracle import evaluate, score
from scoring_strategies import DOCUMENTS, nodes

from pyserini_compneg.compose import Linear, Max, Product, Sum, is_empty
from pyserini_compneg.compose.trees import leaf_vectors, positive_weights
from pyserini_compneg.support.errors import QueryError


@given(nodes(), DOCUMENTS)
def test_scores_are_those_of_the_definitions(node, document):
    matched, value, _ = score(node, document)
    assert evaluate(node, document) == (pytest.approx(value, abs=1e-9) if matched else None)


PENALTY = Product(({"a": 1.0}, {"x": 2.0}), 1.0, weight=-0.5)
TWO = {"a": 4.0, "b": 1.0}, {"c": 1.0}
SIGNED_SUM = Sum((Product(({"a": 1.0}, {"b": 1.0})), Linear({"c": 2.0, "x": -1.0})))
SIGNED_MAX = Max((Linear({"a": 1.0, "x": -5.0}), Linear({"b": 1.0})))


@pytest.mark.parametrize(
    ("node", "document", "expected"),
    [
        (Linear({"a": 2.0, "x": -3.0}), {"a": 1.0, "c": 9.0}, 2.0),
        (Linear({"a": 2.0, "x": -3.0}), {"x": 1.0}, None),
        (Product(TWO), {"a": 1.0, "b": 9.0, "c": 4.0}, (2 + 3) * 2),
        (Product(TWO, 1, root=2), {"a": 1.0, "b": 9.0, "c": 4.0}, math.sqrt((4 + 9) * 4)),
        # A maximum takes matching children only; a sum counts negative terms whatever matches.
        (SIGNED_MAX, {"a": 1.0, "x": 1.0}, -4.0),
        (SIGNED_SUM, {"a": 4.0, "c": 1.0, "x": 5.0}, -3.0),
        # A product of negative weight only lowers a sum.
        (Sum((Linear({"a": 3.0}), PENALTY)), {"a": 2.0, "x": 5.0}, 6.0 - 10.0),
        (Max((PENALTY,)), {"a": 1.0, "x": 1.0}, None),
    ],
)
def test_scores_by_hand(node, document, expected):
    assert evaluate(node, document) == expected
    assert is_empty(node) == (evaluate(node, dict.fromkeys("abcx", 1.0)) is None)


def test_the_power_of_pseudo_terms_is_kept_as_none():
    pair = {"a": 1.0}, {"b": 1.0}
    assert Product(pair, 0.5) == Product(pair)
    assert Product(pair, 0.5).power is None
    assert Product((*pair, {"c": 1.0}), 1 / 3) == Product((*pair, {"c": 1.0}))
    assert (Product(pair).exponent, Product(pair, 1).exponent) == (0.5, 1.0)
    assert [product.is_sum_over_tuples for product in (Product(pair), Product(pair, 1), Product(pair, root=2))] == [
        True,
        False,
        False,
    ]


def test_what_a_tree_is_made_of():
    product = Product(({"a": 1.0}, {"b": 2.0}))
    node = Max((Sum((product, Linear({"a": 3.0, "x": -1.0}))), Linear({"x": 0.5})))
    assert list(leaf_vectors(node)) == [{"a": 1.0}, {"b": 2.0}, {"a": 3.0, "x": -1.0}, {"x": 0.5}]
    assert positive_weights(node) == {"a": 3.0, "b": 2.0, "x": 0.5}
    assert not is_empty(node)
    assert is_empty(Linear({}))
    assert is_empty(Sum((Linear({"x": -1.0}), Linear({}))))


PAIR = {"a": 1.0}, {"b": 1.0}
EXACT = "between 1e-18 and 1e+18 in magnitude, the limits of exact arithmetic"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear({"a": math.nan}), "vector: the weight of 'a' must be a finite number, got nan"),
        (lambda: Linear({"a": 1e-19}), f"vector: the weight of 'a' must be {EXACT}, got 1e-19"),
        (lambda: Linear({"a": -1e19}), f"vector: the weight of 'a' must be {EXACT}, got -1e+19"),
        (lambda: Product(({"a": 1.0},)), "a product needs two or more operands, got 1"),
        (lambda: Product(({"a": 1.0}, {"b": 0.0})), "product[1].vector: an operand of a product needs a term"),
        (
            lambda: Product(({"a": 1.0}, {"b": -1.0})),
            "product[1].vector: the weight of 'b' in a product must be positive, got -1.0",
        ),
        (
            lambda: Product(PAIR * 10, 0.9),
            "power: the power of 20 operands must be above 0 and at most 0.8, got 0.9",
        ),
        (lambda: Max(()), "a maximum needs a child"),
        (lambda: Sum(()), "a sum needs a child"),
        (lambda: Sum((Linear({}), {})), "the children of a sum must be scoring nodes, got Linear, dict"),
    ],
)
def test_nodes_that_mean_nothing_are_refused(make, message):
    with pytest.raises(QueryError) as error:
        make()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("setting", "values", "said"),
    [
        ("power", [0, -1, 1.5, math.nan, True, "1"], "the power of 2 operands must be above 0 and at most 1"),
        ("root", [0, 17, 2.0, True, None], "the root must be a whole number from 1 to 16"),
        (
            "weight",
            [0, 0.0, 1e19, -1e-289, math.nan, math.inf, "1", True, None],
            "the weight of a product must be between 1e-288 and 1e+18 in magnitude",
        ),
    ],
)
def test_settings_of_products_are_checked(setting, values, said):
    for value in values:
        assert refusal(Product, PAIR, **{setting: value}, error=QueryError) == f"{setting}: {said}, got {value!r}"


def test_zeros_are_dropped_and_extremes_are_kept():
    assert Linear({"a": 0, "b": 1}) == Linear({"b": 1.0})
    assert evaluate(Product(PAIR * 10, 0.8, 16), {"a": 1.0, "b": 1.0}) == 1.0
    assert Linear({"a": 1e-18, "b": -1e18}).weights == {"a": 1e-18, "b": -1e18}
