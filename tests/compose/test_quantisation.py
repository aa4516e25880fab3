import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_encoder import LookupEncoder
from refusals import refusal
from score_oracle import evaluate, score
from scoring_strategies import nodes

from pyserini_compneg.compose import (
    Excluding,
    Linear,
    Max,
    Operators,
    Product,
    Sum,
    compose_query,
    quantised,
)
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.compose.trees import nodes as tree_nodes
from pyserini_compneg.support.errors import QueryError


def test_every_leaf_is_rounded_half_to_even():
    vector = {"a": 0.005, "b": 0.015, "c": 0.025, "d": 1.0, "x": -0.015, "y": -0.005}
    whole = {"b": 2.0, "c": 2.0, "d": 100.0, "x": -2.0}
    assert quantised(Linear(vector)) == Linear(whole)
    node = Max((Sum((Product(({"a": 0.126}, {"b": 2.0, "c": 0.001})), Linear({"x": -0.5}))), Linear({})))
    assert quantised(node) == Max((Sum((Product(({"a": 13.0}, {"b": 200.0})), Linear({"x": -50.0}))), Linear({})))


@given(nodes(), st.floats(1e-3, 1e3))
def test_weights_are_whole_and_near(node, scale):
    for before, after in zip(leaf_vectors(node), leaf_vectors(quantised(node, scale)), strict=True):
        assert all(weight == int(weight) for weight in after.values())
        assert after.keys() <= before.keys()
        for term, weight in before.items():
            assert abs(after.get(term, 0.0) - scale * weight) <= 1.0


@given(nodes(), st.floats(1e-6, 1e3))
def test_no_leaf_loses_all_that_it_wants(node, scale):
    wanted = [any(weight > 0 for weight in vector.values()) for vector in leaf_vectors(node)]
    assert [any(w > 0 for w in vector.values()) for vector in leaf_vectors(quantised(node, scale))] == wanted
    if not any(isinstance(one, Excluding) for one in tree_nodes(node)):  # rounding may carry a score over a limit
        everything = dict.fromkeys("abcdef", 1.0)
        found = [score(one, everything).matched for one in (node, quantised(node, scale))]
        assert found[0] == found[1]


def test_the_heaviest_stay_where_all_would_go():
    assert quantised(Linear({"a": 0.004, "b": 0.001, "c": 0.004, "x": -1.0})) == Linear({"a": 1, "c": 1, "x": -100})
    assert quantised(Product(({"a": 1e-18}, {"b": 1.0}))) == Product(({"a": 1.0}, {"b": 100.0}))
    assert quantised(Linear({"x": -0.001})) == Linear({})


def test_products_keep_their_powers_and_those_of_the_conjunction_operators_stay_in_proportion():
    vectors = {"a": 1.0}, {"b": 4.0}, {"c": 16.0}
    node = Product(vectors, 2 / 3, root=2)
    whole = quantised(node)
    assert whole == Product(({"a": 100.0}, {"b": 400.0}, {"c": 1600.0}), 2 / 3, 2)
    document = {"a": 3.0, "b": 5.0, "c": 7.0}
    assert evaluate(whole, document) == pytest.approx(100 * evaluate(node, document))


def test_products_of_another_degree_stay_in_proportion_by_their_weight():
    penalty = Product(({"a": 1.0}, {"x": 2.0}, {"x": 2.0}), 1.0, weight=-0.25)
    assert quantised(penalty) == Product(({"a": 100.0}, {"x": 200.0}, {"x": 200.0}), 1.0, weight=-0.25 / 100**2)
    document = {"a": 3.0, "x": 5.0}
    node = Sum((Linear({"a": 1.0}), penalty))
    assert evaluate(quantised(node), document) == pytest.approx(100 * evaluate(node, document))


@pytest.mark.parametrize("weight", [2.2e7, -2.2e7, 1e18])
def test_too_large_weights(weight):
    with pytest.raises(QueryError) as error:
        quantised(Linear({"a": 1.0, "b": weight}))
    limit = "at weight scale 100, the limit is 2147483647; lower the weight scale"
    assert str(error.value) == f"the weight of 'b' becomes {100 * weight:g} {limit}"


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, True, "100", None])
def test_a_scale_is_a_number_above_zero(scale):
    assert (
        refusal(quantised, Linear({"a": 1.0}), scale, error=QueryError)
        == f"weight_scale must be a finite number above 0, got {scale!r}"
    )


def test_what_is_only_excluded_is_not_kept():
    vectors = {"A": {"p": 1.0, "s": 1.0}, "B": {"r": 1.0}, "C": {"p": 3.0, "x": 1.0}, "D": {"x": 0.02, "y": 5.0}}
    operators = Operators(intersection="cpt", difference="orthogonal")
    node = compose_query("(A AND B) NOT C NOT D", LookupEncoder(vectors), operators)
    assert node == Sum((Product(({"p": 100.0, "s": 100.0}, {"r": 100.0})), Linear({"p": -90.0, "x": -30.0})))
