import math

import pytest
from hypothesis import assume, given
from scoring_strategies import DOCUMENTS, defined_score, nodes

from pyserini_compneg.compose import Linear, Max, Product, Sum, evaluate, is_empty
from pyserini_compneg.compose.trees import leaf_vectors, positive_weights
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import positive_part


@given(nodes(), DOCUMENTS)
def test_scores_are_those_of_the_definitions(node, document):
    matches, score = defined_score(node, document)
    assert evaluate(node, document) == (pytest.approx(score, abs=1e-9) if matches else None)


def test_products_of_negative_weight_only_lower_a_sum():
    penalty = Product(({"a": 1.0}, {"x": 2.0}), 1.0, weight=-0.5)
    assert evaluate(Sum((Linear({"a": 3.0}), penalty)), {"a": 2.0, "x": 5.0}) == 6.0 - 10.0
    assert evaluate(Sum((Linear({"a": 3.0}), penalty)), {"a": 2.0}) == 6.0
    for node in (penalty, Max((penalty,)), Sum((penalty, Linear({"a": -1.0})))):
        assert evaluate(node, {"a": 1.0, "x": 1.0}) is None
        assert is_empty(node)
    assert evaluate(Max((penalty, Linear({"a": -1.0, "x": 0.5}))), {"a": 2.0, "x": 2.0}) == -1.0


def test_linear_scores_by_hand():
    node = Linear({"a": 2.0, "b": 1.0, "x": -3.0})
    assert evaluate(node, {"a": 1.0, "b": 4.0, "c": 9.0}) == 6.0
    assert evaluate(node, {"b": 3.0, "x": 1.0}) == 0.0
    assert evaluate(node, {"x": 1.0}) is None
    assert evaluate(Linear({}), {"a": 1.0}) is None


def test_product_scores_by_hand():
    two = Product(({"a": 4.0, "b": 1.0}, {"c": 1.0}))
    assert evaluate(two, {"a": 1.0, "b": 9.0, "c": 4.0}) == (2 + 3) * 2
    assert evaluate(two, {"a": 1.0, "b": 1.0}) is None
    three = Product(({"a": 8.0}, {"b": 1.0}, {"c": 27.0}))
    assert evaluate(three, {"a": 1.0, "b": 8.0, "c": 1.0}) == pytest.approx(2 * 2 * 3)


def test_products_with_other_powers_by_hand():
    operands = {"a": 4.0, "b": 1.0}, {"c": 1.0}
    document = {"a": 1.0, "b": 9.0, "c": 4.0}
    assert evaluate(Product(operands, 1.0), document) == (4 + 9) * 4
    assert evaluate(Product(operands, 1, root=2), document) == math.sqrt((4 + 9) * 4)
    assert evaluate(Product(operands, root=2), document) == math.sqrt((2 + 3) * 2)
    assert evaluate(Product(operands, 1, root=2), {"a": 1.0}) is None


@given(nodes(), DOCUMENTS)
def test_the_l2_norm_over_pairs_is_a_product(node, document):
    """Eq. 8 with the norm read as L2, over the pairs of the first two operands of what has some."""
    vectors = [vector for vector in map(positive_part, leaf_vectors(node)) if vector][:2]
    assume(len(vectors) == 2)
    pairs = [
        (w * x) * (document.get(s, 0.0) * document.get(t, 0.0))
        for s, w in vectors[0].items()
        for t, x in vectors[1].items()
    ]
    score = evaluate(Product(tuple(vectors), 2 / 2, root=2), document)
    assert (score or 0.0) == pytest.approx(math.hypot(*map(math.sqrt, pairs)))


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


def test_a_maximum_takes_matching_children_only():
    node = Max((Linear({"a": 1.0, "x": -5.0}), Linear({"b": 1.0})))
    assert evaluate(node, {"a": 1.0, "x": 1.0}) == -4.0
    assert evaluate(node, {"a": 1.0, "x": 1.0, "b": 2.0}) == 2.0
    assert evaluate(node, {"x": 1.0}) is None


def test_a_sum_counts_negative_terms_whatever_matches():
    node = Sum((Product(({"a": 1.0}, {"b": 1.0})), Linear({"c": 2.0, "x": -1.0})))
    assert evaluate(node, {"a": 4.0, "b": 9.0, "x": 5.0}) == 1.0
    assert evaluate(node, {"a": 4.0, "c": 1.0, "x": 5.0}) == -3.0
    assert evaluate(node, {"a": 4.0, "x": 5.0}) is None


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
        with pytest.raises(QueryError) as error:
            Product(PAIR, **{setting: value})
        assert str(error.value) == f"{setting}: {said}, got {value!r}"


def test_zeros_are_dropped_and_extremes_are_kept():
    assert Linear({"a": 0, "b": 1}) == Linear({"b": 1.0})
    assert evaluate(Product(PAIR * 10, 0.8, 16), {"a": 1.0, "b": 1.0}) == 1.0
    assert Linear({"a": 1e-18, "b": -1e18}).weights == {"a": 1e-18, "b": -1e18}
