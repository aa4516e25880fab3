"""Random scoring trees and documents."""

from __future__ import annotations

from hypothesis import strategies as st

from pyserini_compneg.compose import Linear, Max, Product, ScoringNode, Sum

TERMS = st.sampled_from("abcdef")
POSITIVE = st.dictionaries(TERMS, st.integers(1, 9).map(float), min_size=1, max_size=4)
SIGNED = st.dictionaries(TERMS, st.integers(-9, 9).map(float), max_size=4)
DOCUMENTS = st.dictionaries(TERMS, st.integers(1, 50).map(float))
POWERS = st.sampled_from([None, 0.5, 2 / 3, 0.7, 1.0])
ROOTS = st.sampled_from([1, 2, 2, 3])
PRODUCT_WEIGHTS = st.sampled_from([1.0, 1.0, 0.3, -0.5, -1.0, -4.0])


def nodes() -> st.SearchStrategy[ScoringNode]:
    """Trees of every shape."""

    def above(children: st.SearchStrategy[ScoringNode]) -> st.SearchStrategy[ScoringNode]:
        several = st.lists(children, min_size=1, max_size=3).map(tuple)
        return several.map(Max) | several.map(Sum)

    operands = st.lists(POSITIVE, min_size=2, max_size=3).map(tuple)
    products = operands.map(Product) | st.builds(Product, operands, POWERS, ROOTS, PRODUCT_WEIGHTS)
    return st.recursive(SIGNED.map(Linear) | products, above, max_leaves=8)
