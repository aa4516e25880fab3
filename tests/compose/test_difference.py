import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose.difference import (
    VECTOR_DIFFERENCES,
    constant,
    disentangled,
    nrf,
    orthogonal,
    subtraction,
)
from pyserini_compneg.vectors import add, dot, norm, scale

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
SHARED = ("birds", "fly", "andes")
VECTORS = st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 5).filter(bool).map(float))


def shared(weight):
    return dict.fromkeys(SHARED, weight)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("disentangled", {**shared(1.0), "colombia": 1.0, "venezuela": -1.0}),
        ("subtraction", {"colombia": 1.0, "venezuela": -1.0}),
        ("nrf", {**shared(0.75), "colombia": 1.0, "venezuela": -0.25}),
        ("constant", {**shared(0.25), "colombia": 1.0, "venezuela": -0.75}),
        # A·B = 3 and |B|² = 4, so three quarters of B go.
        ("orthogonal", {**shared(0.25), "colombia": 1.0, "venezuela": -0.75}),
        ("ignore", COLOMBIA),
    ],
)
def test_the_papers_birds(name, expected):
    assert VECTOR_DIFFERENCES[name](COLOMBIA, [VENEZUELA]) == expected


@pytest.mark.parametrize("operator", VECTOR_DIFFERENCES.values())
@given(a=VECTORS)
def test_nothing_to_take_away(operator, a):
    assert operator(a, []) == operator(a, [{}]) == operator(a, [{}, {}]) == a


def test_several_negatives():
    a, negatives = {"a": 1.0}, [{"a": 1.0, "x": 1.0, "y": 3.0}, {"x": 2.0}]
    assert disentangled(a, negatives) == {"a": 1.0, "x": -2.0, "y": -3.0}
    assert subtraction(a, negatives) == {"x": -3.0, "y": -3.0}
    assert nrf(a, negatives) == {"a": 0.875, "x": -0.375, "y": -0.375}
    assert nrf(a, negatives, weight=1.0) == {"a": 0.5, "x": -1.5, "y": -1.5}
    assert constant(a, negatives) == {"a": 0.25, "x": -2.25, "y": -2.25}
    assert constant(a, negatives, weight=0.5) == {"a": 0.5, "x": -1.5, "y": -1.5}


def test_signed_negatives_are_subtracted_as_they_are():
    assert disentangled({"a": 1.0}, [{"x": -2.0}]) == {"a": 1.0, "x": 2.0}
    assert subtraction({"a": 1.0}, [{"x": -2.0, "a": -1.0}]) == {"a": 2.0, "x": 2.0}


@given(VECTORS, VECTORS)
def test_orthogonal_is_widdows_first_equation(a, b):
    expected = add(a, b, -dot(a, b) / dot(b, b)) if b else a
    result = orthogonal(a, [b])
    assert all(abs(result.get(term, 0.0) - expected.get(term, 0.0)) < 1e-12 for term in "abcdef")


@given(VECTORS, st.lists(VECTORS, max_size=7))
def test_orthogonal_is_orthogonal_to_each_negative(a, negatives):
    result = orthogonal(a, negatives)
    for negative in negatives:
        assert abs(dot(result, negative)) <= 1e-9 * norm(a) * norm(negative)
    assert all(abs(weight) > 1e-12 * norm(a) for weight in result.values())


@given(VECTORS, VECTORS, VECTORS, st.integers(-3, 3), st.integers(-3, 3))
def test_a_dependent_negative_changes_nothing(a, b, c, m, n):
    dependent = add(scale(b, m / 3), c, n / 7)
    assert orthogonal(a, [b, c, dependent]) == orthogonal(a, [b, c])
    reordered = orthogonal(a, [dependent, c, b])
    assert norm(add(reordered, orthogonal(a, [b, c]), -1.0)) <= 1e-9 * norm(a)


@given(VECTORS, VECTORS, st.integers(-9, 9), st.integers(-9, 9))
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
