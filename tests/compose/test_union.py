from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose.union import VECTOR_UNIONS

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
VECTORS = st.dictionaries(st.sampled_from("abcd"), st.integers(-4, 4).filter(bool).map(float))


def test_the_papers_birds():
    assert VECTOR_UNIONS["maxpool"]([COLOMBIA, VENEZUELA]) == {**COLOMBIA, "venezuela": 1.0}
    assert VECTOR_UNIONS["addition"]([COLOMBIA, VENEZUELA]) == {
        "birds": 2.0,
        "fly": 2.0,
        "colombia": 1.0,
        "andes": 2.0,
        "venezuela": 1.0,
    }


@pytest.mark.parametrize("unite", VECTOR_UNIONS.values())
@given(vectors=st.lists(VECTORS, min_size=1))
def test_nesting_makes_no_difference(unite, vectors):
    assert unite(vectors) == reduce(lambda a, b: unite([a, b]), vectors)


def test_maxpool_forgets_a_negation():
    assert VECTOR_UNIONS["maxpool"]([{"a": 1.0, "b": -1.0}, {"c": 1.0}]) == {"a": 1.0, "c": 1.0}
    assert VECTOR_UNIONS["maxpool"]([{"b": -1.0}, {"b": -2.0}]) == {"b": -1.0}


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        VECTOR_UNIONS["mine"] = max
