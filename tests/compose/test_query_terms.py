import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pair_index import document_pairs
from score_oracle import evaluate
from scoring_strategies import DOCUMENTS, POSITIVE, SIGNED, nodes

from pyserini_compneg.compose import Linear, Max, Product, Sum, query_terms

PAIRS = st.tuples(POSITIVE, POSITIVE).map(Product)
SUMS = st.recursive(
    SIGNED.map(Linear) | PAIRS, lambda inner: st.lists(inner, min_size=1).map(tuple).map(Sum), max_leaves=8
)


@given(SUMS, DOCUMENTS)
def test_the_weights_times_a_documents_pairs_are_its_score(node, document):
    node, document = Sum((node, Linear({"z": 1.0}))), {**document, "z": 1.0}  # which matches
    pairs = document_pairs(document, top=len(document))
    parts = [weight * pairs[term] for term, weight in query_terms(node, 1.0) if term in pairs]
    assert math.fsum(parts) == pytest.approx(evaluate(node, document), abs=1e-12 * sum(map(abs, parts)))


@given(nodes())
def test_heaviest_first_and_without_zeros(node):
    found = query_terms(node)
    assert [abs(weight) for _, weight in found] == sorted((abs(weight) for _, weight in found), reverse=True)
    assert all(weight for _, weight in found)
    assert len({term for term, _ in found}) == len(found)


def test_a_sum_adds_up():
    pair = {"a": 400.0}, {"x": 100.0}
    assert query_terms(Product(pair, weight=-0.5)) == [("a∩x", -1.0)]
    assert query_terms(Product((*pair, pair[1], pair[1]), 1.0, weight=-1e-9)) == [("a∩x", -2.0)]
    node = Sum((Product(({"a": 400.0, "b": 900.0}, {"b": 100.0})), Linear({"b": 50.0, "x": -1000.0})))
    assert query_terms(node) == [("x", -10.0), ("b", 3.5), ("a∩b", 2.0)]


def test_what_cancels_is_left_out():
    node = Sum((Product(({"a": 2.0}, {"a": 3.0})), Linear({"a": -math.sqrt(6.0), "b": 1.0})))
    assert query_terms(node) == [("b", 0.01)]


def test_alternatives_have_the_weight_of_largest_magnitude():
    node = Max((Linear({"a": 2.0, "b": -1.0}), Linear({"a": 3.0, "b": -4.0, "c": 1.0}), Linear({"b": 2.0})))
    assert query_terms(node, 1.0) == [("b", -4.0), ("a", 3.0), ("c", 1.0)]


def test_the_heaviest_of_very_many_tuples():
    operands = [{f"{name}{i}": float(1 + (i * 37) % 101) for i in range(101)} for name in "ab"]
    found = query_terms(Product(tuple(operands)), 1.0)
    every = sorted((math.sqrt(a * b) for a, b in itertools.product(*(o.values() for o in operands))), reverse=True)
    assert [weight for _, weight in found] == pytest.approx(every[:4096])


def test_of_very_wide_conjunctions_there_are_fewer_tuples():
    """The work and the text grow with the operands, not with their square."""
    for count, expected in ((16, 4096), (64, 1024), (1024, 64)):
        operands = tuple({f"{number:04}a": 400.0, f"{number:04}b": 100.0 + number} for number in range(count))
        found = query_terms(Product(operands), 1.0)
        assert len(found) == expected
        assert found[0].weight == pytest.approx(max(found, key=lambda term: term.weight).weight)
        assert found[0].term == "∩".join(f"{number:04}{'a' if number <= 300 else 'b'}" for number in range(count))
