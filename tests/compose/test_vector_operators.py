"""Union, intersection and difference of vectors; the examples of the paper are in the tests of the composer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose.difference import elementwise, orthogonal
from pyserini_compneg.compose.intersection import CPT_TERMS, cpt_operands, cpt_pairs
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import add, dot, norm, scale

SIGNED = st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 5).filter(bool).map(float))


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


@given(SIGNED, st.lists(SIGNED, max_size=7))
def test_orthogonal_is_orthogonal_to_each_negative(a, negatives):
    result = orthogonal(a, negatives)
    for negative in negatives:
        assert abs(dot(result, negative)) <= 1e-9 * norm(a) * norm(negative)
    assert all(abs(weight) > 1e-12 * norm(a) for weight in result.values())


def test_the_weights_of_table_2():
    """Krasakis et al. print A (as ignoring the negation), B's European terms, and the result to two decimals.

    The weights of B for the terms of A are those that the row of NRF, ¾ A − ¼ B, leaves.
    """
    a = {"monarch": 1.25, "history": 1.13, "book": 1.03, "king": 0.77, "royal": 0.63}
    nrf = {
        "monarch": 0.64,
        "history": 0.81,
        "book": 0.49,
        "king": 0.43,
        "royal": 0.34,
        "europe": -0.16,
        "european": -0.29,
    }
    b = {term: 3 * a.get(term, 0.0) - 4 * weight for term, weight in nrf.items()}
    printed = {"european": 1.17, "europe": 0.66}  # of disentangled negation
    assert all(abs(b[term] - weight) <= 0.025 for term, weight in printed.items())
    rest = 9.8 - norm(b) ** 2  # other terms of B, which the table does not print; fitted to the orthogonal row
    orthogonal_row = {"history": 1.12, "monarch": 1.07, "book": 0.89, "king": 0.74, "royal": 0.61}
    found = elementwise(a, [{**b, "others": rest**0.5}])
    assert found.keys() == orthogonal_row.keys()
    assert all(abs(found[term] - weight) <= 0.01 for term, weight in orthogonal_row.items())
    assert orthogonal(a, [b])["european"] < 0


@given(SIGNED, st.lists(SIGNED, max_size=7))
def test_elementwise_takes_the_largest_share(a, negatives):
    result = elementwise(a, negatives, 0.5)
    for term, weight in a.items():
        shares = [(b.get(term, 0.0) / norm(b)) ** 2 for b in negatives if b]
        assert abs(result.get(term, 0.0) - weight * (1 - 0.5 * max(shares, default=0.0))) <= 1e-12
    assert result.keys() <= a.keys() and elementwise(a, [a], 0.0) == a


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


def test_nearly_parallel_negatives_leave_no_trace_of_either():
    b, c = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 1.0 + 1e-7}
    result = orthogonal({"x": 3.0, "y": 1.0, "z": 2.0}, [b, c])
    assert result == {"z": 2.0}
