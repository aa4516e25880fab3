"""Union, intersection and difference of vectors; the examples of the paper are in the tests of the composer."""

import math
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pair_index import document_pairs

from pyserini_compneg.compose.difference import (
    VECTOR_DIFFERENCES,
    disentangled,
    orthogonal,
    subtraction,
)
from pyserini_compneg.compose.intersection import CPT_TERMS, cpt_operands, cpt_pairs
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import add, dot, norm, scale, top_terms

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
SIGNED = st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 5).filter(bool).map(float))
POSITIVE = st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-3, 1e3), min_size=1)


@pytest.mark.parametrize("unite", VECTOR_UNIONS.values())
@given(vectors=st.lists(SIGNED, min_size=1))
def test_nested_unions_are_one(unite, vectors):
    assert unite(vectors) == reduce(lambda a, b: unite([a, b]), vectors)


def test_maxpool_forgets_a_negation():
    assert VECTOR_UNIONS["maxpool"]([{"a": 1.0, "b": -1.0}, {"c": 1.0}]) == {"a": 1.0, "c": 1.0}
    assert VECTOR_UNIONS["maxpool"]([{"b": -1.0}, {"b": -2.0}]) == {"b": -1.0}


def factored(operands, document):
    """(Σ √(aᵢdᵢ)) · (Σ √(bⱼdⱼ))."""
    a, b = ([math.sqrt(w * document.get(term, 0.0)) for term, w in operand.items()] for operand in operands)
    return sum(a) * sum(b)


def test_the_papers_birds():
    pairs = cpt_pairs([COLOMBIA, VENEZUELA])
    assert pairs["colombia∩venezuela"] == 1.0
    assert pairs["birds∩colombia"] == pairs["birds∩venezuela"] == 1.0
    # (andes, birds) and (birds, andes) are one pseudo-term, (birds, birds) is the term itself.
    assert pairs["andes∩birds"] == 2.0
    assert pairs["birds"] == 1.0
    assert len(pairs) == 16 - 3
    assert sum(pairs.values()) == 16.0


def test_pairs_by_hand():
    assert cpt_pairs([{"a": 4.0, "b": 9.0}, {"b": 1.0, "c": 0.25}]) == {
        "b": 3.0,
        "b∩c": 1.5,
        "a∩b": 2.0,
        "a∩c": 1.0,
    }


def test_signs_stand_between_terms_in_code_point_order():
    assert list(cpt_pairs([{"é": 1.0}, {"z": 1.0}])) == ["z\u2229é"]


def test_only_the_heaviest_positive_terms_take_part():
    many = {f"t{i}": float(i) for i in range(1, 9)}
    assert cpt_operands([many, {"a": -9.0, "b": 1.0}]) == [{f"t{i}": float(i) for i in (8, 7, 6, 5, 4)}, {"b": 1.0}]
    assert CPT_TERMS == 5
    assert len(cpt_pairs([many, {"x": 1.0}], top=2)) == 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_pseudo_terms_are_pairs(count):
    with pytest.raises(QueryError) as error:
        cpt_pairs([{"a": 1.0}] * count)
    remedy = "use the factored form (--cpt factored), which takes any number"
    assert str(error.value) == f"pseudo-terms are pairs, of two operands, got {count} operands; {remedy}"


@given(POSITIVE, POSITIVE, POSITIVE, st.integers(1, 6))
@example({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 3.0}, {"a": 5.0, "b": 7.0}, 5)
def test_both_forms_score_alike(a, b, document, top):
    materialised = dot(cpt_pairs([a, b], top), document_pairs(document, top))
    kept = top_terms(document, top)
    assert materialised == pytest.approx(factored(cpt_operands([a, b], top), kept))


@pytest.mark.parametrize("operator", VECTOR_DIFFERENCES.values())
@given(a=SIGNED)
def test_nothing_to_take_away(operator, a):
    assert operator(a, []) == operator(a, [{}]) == operator(a, [{}, {}]) == a


def test_several_negatives():
    a, negatives = {"a": 1.0}, [{"a": 1.0, "x": 1.0, "y": 3.0}, {"x": 2.0}]
    assert disentangled({"b": 1.0}, negatives) == {"b": 1.0, "a": -1.0, "x": -2.0, "y": -3.0}
    assert subtraction(a, negatives) == {"x": -3.0, "y": -3.0}
    assert subtraction(a, negatives, weight=0.25) == {"a": 0.75, "x": -0.75, "y": -0.75}


@given(SIGNED, SIGNED)
def test_orthogonal_is_widdows_first_equation(a, b):
    expected = add(a, b, -dot(a, b) / dot(b, b)) if b else a
    result = orthogonal(a, [b])
    assert all(abs(result.get(term, 0.0) - expected.get(term, 0.0)) < 1e-12 for term in "abcdef")


@given(SIGNED, st.lists(SIGNED, max_size=7))
def test_orthogonal_is_orthogonal_to_each_negative(a, negatives):
    result = orthogonal(a, negatives)
    for negative in negatives:
        assert abs(dot(result, negative)) <= 1e-9 * norm(a) * norm(negative)
    assert all(abs(weight) > 1e-12 * norm(a) for weight in result.values())


@given(SIGNED, SIGNED, SIGNED, st.integers(-3, 3), st.integers(-3, 3))
def test_a_dependent_negative_changes_nothing(a, b, c, m, n):
    dependent = add(scale(b, m / 3), c, n / 7)
    assert orthogonal(a, [b, c, dependent]) == orthogonal(a, [b, c])
    reordered = orthogonal(a, [dependent, c, b])
    assert norm(add(reordered, orthogonal(a, [b, c]), -1.0)) <= 1e-9 * norm(a)


@given(SIGNED, SIGNED, st.integers(-9, 9), st.integers(-9, 9))
def test_what_the_negatives_span_vanishes(b, c, m, n):
    assert orthogonal(add(scale(b, m / 7), c, n / 3), [b, c]) == {}
    assert orthogonal(b, [b]) == {}


def test_order_matters_to_projections_one_after_another_but_not_to_the_span():
    a, b, c = {"x": 1.0, "y": 1.0, "z": 1.0}, {"x": 1.0}, {"x": 1.0, "y": 1.0}
    assert orthogonal(orthogonal(a, [c]), [b]) == orthogonal(a, [b, c]) == {"z": 1.0}
    assert orthogonal(orthogonal(a, [b]), [c]) == {"x": -0.5, "y": 0.5, "z": 1.0}


def test_nearly_parallel_negatives_leave_no_trace_of_either():
    b, c = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 1.0 + 1e-7}
    result = orthogonal({"x": 3.0, "y": 1.0, "z": 2.0}, [b, c])
    assert result == {"z": 2.0}
