import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.algebra import complement_term, is_pseudo_term, pair_term, signed_query
from pyserini_compneg.vectors import dot

SIGNED = st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).filter(bool).map(float))


@given(SIGNED, SIGNED)
def test_a_signed_product_is_one_of_magnitudes(query, document):
    stored = {term if weight > 0 else complement_term(term): abs(weight) for term, weight in document.items()}
    assert dot(signed_query(query), stored) == dot(query, document)


@pytest.mark.parametrize("term", ["a∩b", "¬a", "¬¬", "¬∩", "∩∩∩", "a∩b∩c", pair_term("∩", "a"), pair_term("¬", "a")])
def test_pseudo_terms(term):
    assert is_pseudo_term(term)


@pytest.mark.parametrize("term", ["a", "¬", "∩", "∩a", "a∩", "##∩", "a¬", "∩∩"])
def test_ordinary_terms(term):
    assert not is_pseudo_term(term)
