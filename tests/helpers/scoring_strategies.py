"""Random scoring trees and documents."""

from __future__ import annotations

from hypothesis import strategies as st

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum

TERMS = st.sampled_from("abcdef")
POSITIVE = st.dictionaries(TERMS, st.integers(1, 9).map(float), min_size=1, max_size=4)
SIGNED = st.dictionaries(TERMS, st.integers(-9, 9).map(float), max_size=4)
DOCUMENTS = st.dictionaries(TERMS, st.integers(1, 50).map(float))
POWERS = st.sampled_from([None, 0.5, 2 / 3, 0.7, 1.0])
ROOTS = st.sampled_from([1, 2, 2, 3])
BEST_SCORES = st.sampled_from([1.0, 50.0, 400.0])
DAMPED_WEIGHTS = st.sampled_from([0.1, 0.5, 1.0])
FLOORS = st.sampled_from([0.0, 0.0, 3.0, 40.0])
LIMITS = st.sampled_from([0.0, 0.0, 2.718281828, 141.4213562])  # no score that is rounded elsewhere falls on one
PRODUCT_WEIGHTS = st.sampled_from([1.0, 1.0, 0.3, -0.5, -1.0, -4.0])


def nodes() -> st.SearchStrategy[ScoringNode]:
    """Trees of every shape over a few terms."""
    return trees(SIGNED, POSITIVE, 3)


def trees(
    linear: st.SearchStrategy, operand: st.SearchStrategy, most: int, filters: st.SearchStrategy | None = None
) -> st.SearchStrategy[ScoringNode]:
    """Trees of every kind of node.

    Args:
        linear: The vectors of leaves.
        operand: Vectors without negative weights.
        most: The most children, and the most operands of a product.
        filters: Filters that exclude documents; by default none does.
    """

    def above(children: st.SearchStrategy[ScoringNode]) -> st.SearchStrategy[ScoringNode]:
        several = st.lists(children, min_size=1, max_size=most).map(tuple)
        lowered = st.builds(_damped, children, excluded, DAMPED_WEIGHTS, FLOORS)
        exclude = st.builds(_excluding, children, barred, st.just(()) | required)
        return (
            several.map(Max) | several.map(Sum) | lowered | exclude | st.builds(Excluding, children, required=required)
        )

    required = st.lists(operand.map(Linear), min_size=1, max_size=2).map(tuple)
    operands = st.lists(operand, min_size=2, max_size=most).map(tuple)
    parts = operand.map(Linear) | st.builds(Product, operands, POWERS, ROOTS, st.sampled_from([1.0, 0.3]))
    excluded = st.lists(st.tuples(parts, BEST_SCORES), min_size=1, max_size=3)
    barred = st.lists(st.tuples(parts, LIMITS), min_size=1, max_size=3)
    if filters is not None:
        barred |= st.lists(st.tuples(filters, st.just(0.0)), min_size=1, max_size=2)
    products = operands.map(Product) | st.builds(Product, operands, POWERS, ROOTS, PRODUCT_WEIGHTS)
    return st.recursive(linear.map(Linear) | products, above, max_leaves=8)


def _damped(child: ScoringNode, excluded: list[tuple[Linear | Product, float]], weight: float, floor: float) -> Damped:
    parts, best = zip(*excluded, strict=True)
    return Damped(child, parts, best, weight, floor)


def _excluding(
    child: ScoringNode, excluded: list[tuple[Linear | Product, float]], required: tuple[Linear, ...]
) -> Excluding:
    parts, limits = zip(*excluded, strict=True)
    return Excluding(child, parts, limits, required)
