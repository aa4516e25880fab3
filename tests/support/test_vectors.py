import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.vectors import (
    add,
    checked,
    dot,
    is_pseudo_term,
    max_pool,
    norm,
    pair_term,
    positive_part,
    scale,
    top_terms,
)

SPACE = "white space, so no index holds it; weigh its words one by one"
NO_NUMBERS_OF_NUMPY = (np.float32("nan"), np.float16("-inf"), np.float32("inf"), np.bool_(True), np.timedelta64(1, "s"))
VECTORS = st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).filter(bool).map(float))


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        *(
            ({"a": weight}, f"the weight of 'a' must be a finite number, got {weight!r}")
            for weight in (math.nan, math.inf, -math.inf, 10**400, True, "1", None, *NO_NUMBERS_OF_NUMPY)
        ),
        *(({term: 1.0}, f"a term must be a non-empty text, got {term!r}") for term in ("", 3)),
        *(
            ({"a": 1.0, term: 1.0}, f"the term {term!r} has {SPACE}")
            for term in map("spy{}film".format, " \t\n\r\x1f\u2003\u2028\u3000")
        ),
    ],
)
def test_what_is_no_vector(vector, said):
    assert refusal(checked, vector, "line 3", error=EncodingError) == f"line 3: {said}"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64])
def test_weights_may_be_numbers_of_numpy(kind):
    made = checked({"a": kind(2), "b": kind(0)}, "line 3")
    assert made == {"a": 2.0} and type(made["a"]) is float


@pytest.mark.parametrize("space", list("\x85\xa0\u2007\u202f"))
def test_terms_that_lucene_does_not_divide_are_taken(space):
    assert checked({f"spy{space}film": 1.0}, "line 3") == {f"spy{space}film": 1.0}


def test_what_cancels_is_dropped_and_what_is_small_is_kept():
    assert add({"a": 0.1 + 0.2}, {"a": 0.3}, -1.0) == {}
    assert add({"a": 1.0}, {"b": 1e-18}) == {"a": 1.0, "b": 1e-18}
    assert add({"a": 1.0}, {"a": 1.0 - 1e-12}, -1.0) == {"a": pytest.approx(1e-12, rel=1e-3)}


@given(VECTORS, VECTORS)
def test_sparse_operations_are_the_dense_ones(a, b):
    dense = [(a.get(term, 0.0), b.get(term, 0.0)) for term in "abcdef"]

    def sparse(values):
        return {term: value for term, value in zip("abcdef", values, strict=True) if value}

    assert add(a, b, -2.0) == sparse(x - 2 * y for x, y in dense)
    assert scale(a, 0.5) == sparse(x / 2 for x, _ in dense)
    assert dot(a, b) == dot(b, a) == sum(x * y for x, y in dense)
    assert norm(a) == pytest.approx(sum(x * x for x, _ in dense) ** 0.5)
    assert max_pool([a, b]) == sparse(max(x, y) for x, y in dense)
    assert positive_part(a) == sparse(max(x, 0) for x, _ in dense)


def test_top_terms_are_reproducible():
    assert list(top_terms({"é": 1.0, "b": 1.0, "a": -1.0, "c": 2.0}, 3)) == ["c", "b", "é"]


PSEUDO = ["a∩b", "¬a", "¬¬", "¬∩", "∩∩∩", "a∩b∩c", pair_term("∩", "a"), pair_term("¬", "a")]
ORDINARY = ["a", "¬", "∩", "∩a", "a∩", "##∩", "a¬", "∩∩"]


def test_pseudo_terms():
    assert list(filter(is_pseudo_term, PSEUDO + ORDINARY)) == PSEUDO
