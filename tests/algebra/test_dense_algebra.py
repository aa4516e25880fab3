"""The algebra of dense vectors against its definitions: least squares, planes seen from all angles, set identities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.algebra.dense import addition, disjunction, ignore, orthogonal, orthonormal, subtraction

A, B, C, D = np.eye(4)[:, None, :]

numbers = st.floats(-10, 10, allow_subnormal=False).map(lambda number: round(number, 3))


def rows(least, most):
    """So many vectors of five numbers, none of them 0."""
    vector = st.lists(numbers, min_size=5, max_size=5).filter(any)
    return st.lists(vector, min_size=least, max_size=most).map(np.array)


def span_projection(vector, others):
    weights = np.linalg.lstsq(others.T, vector, rcond=1e-6)[0]
    return others.T @ weights


@given(rows(1, 1), rows(1, 4))
def test_orthogonal_is_what_least_squares_leave(a, negatives):
    expected = a[0] - span_projection(a[0], negatives)
    found = orthogonal(a, negatives)
    if np.linalg.norm(expected) > 1e-4 * np.linalg.norm(a):
        np.testing.assert_allclose(found, [expected], atol=1e-6 * np.linalg.norm(a))
        directions = negatives / np.linalg.norm(negatives, axis=1, keepdims=True)
        assert np.abs(found @ directions.T).max() <= 1e-3 * np.linalg.norm(a)
    else:
        assert len(found) <= 1


def test_orthogonal_of_one_negative_is_equation_1():
    a, b = np.array([[3.0, 1.0, 0.5]]), np.array([[1.0, 2.0, -1.0]])
    np.testing.assert_allclose(orthogonal(a, b), a - (a @ b.T) / (b @ b.T) * b, atol=1e-12)


def test_negatives_may_depend_on_each_other_and_come_in_any_order():
    a, b, c = np.array([[1.0, 2.0, 3.0, 4.0]]), A + B, B + 2 * C
    expected = orthogonal(a, disjunction([b, c]))
    for negatives in ([c, b], [b, c, b], [b, c, b + c], [2 * b, -c, b - c]):
        np.testing.assert_allclose(orthogonal(a, disjunction(negatives)), expected, atol=1e-12)


def test_a_negated_disjunction_is_not_one_negation_after_another():
    """Widdows, Section 2: projections do not commute, so the negatives need an orthonormal basis."""
    a, b, c = A + B + C, A, A + B
    at_once = orthogonal(a, disjunction([b, c]))
    np.testing.assert_allclose(at_once, C, atol=1e-12)
    assert not np.allclose(orthogonal(orthogonal(a, b), c), at_once)


@pytest.mark.parametrize("operator", [orthogonal, subtraction])
def test_nothing_is_left_of_what_is_excluded_itself(operator):
    a = np.array([[0.1, 0.2, 0.3]])
    assert operator(a, a).shape == (0, 3)


def test_rounding_of_32_bits_is_nothing():
    a = np.float32([[0.1, 0.2, 0.3]])
    assert orthogonal(a.astype(np.float64), a.astype(np.float64) * (1 + 1e-7)).shape == (0, 3)
    nearly = a.astype(np.float64) + [[0.0, 3e-8, -3e-8]]
    assert len(orthonormal(disjunction([a.astype(np.float64), nearly]))) == 1


def test_a_plane_on_the_left_loses_what_is_excluded():
    np.testing.assert_allclose(orthogonal(disjunction([A + C, B + C]), C), disjunction([A, B]), atol=1e-12)
    np.testing.assert_allclose(subtraction(disjunction([A, B]), C), disjunction([A - C, B - C]))
    assert len(orthogonal(disjunction([A, B]), B)) == 1


def test_subtraction_takes_every_negative():
    np.testing.assert_allclose(subtraction(A, disjunction([B, C])), A - B - C)


def test_ignore_keeps_the_positive_part():
    assert ignore(A, B) is A


def test_addition_is_one_vector_of_all():
    np.testing.assert_allclose(addition([disjunction([A, B]), C]), A + B + C)


@given(rows(1, 4))
def test_orthonormal_spans_the_same(vectors):
    basis = orthonormal(vectors)
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-9)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    largest = lengths.max()
    np.testing.assert_allclose(vectors @ basis.T @ basis, vectors, atol=2e-5 * largest)


@given(rows(1, 1))
def test_a_single_direction_keeps_its_sign(vectors):
    np.testing.assert_allclose(orthonormal(vectors), vectors / np.linalg.norm(vectors), atol=1e-12)


def test_a_line_has_the_sign_of_its_first_vector():
    np.testing.assert_allclose(orthonormal(np.array([[-2.0, 0.0], [1.0, 0.0]])), [[-1.0, 0.0]])
    np.testing.assert_allclose(orthonormal(np.array([[1.0, 0.0], [-1.0, 0.0]])), [[1.0, 0.0]])


def test_the_similarity_to_a_plane_is_that_of_its_closest_vector():
    choice = np.random.default_rng(5)
    a, b, document = choice.normal(size=(3, 6))
    length = np.linalg.norm(orthonormal(np.array([a, b])) @ document) / np.linalg.norm(document)
    angles = np.arange(0, 2 * math.pi, 1e-4)[:, None]
    within = np.cos(angles) * a / np.linalg.norm(a) + np.sin(angles) * b / np.linalg.norm(b)
    cosines = within @ document / np.linalg.norm(within, axis=1) / np.linalg.norm(document)
    assert length == pytest.approx(cosines.max(), abs=1e-7)


def test_nothing_has_no_basis():
    assert orthonormal(np.zeros((0, 3))).shape == orthonormal(np.zeros((2, 3))).shape == (0, 3)
