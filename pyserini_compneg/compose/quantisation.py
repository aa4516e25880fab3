"""Whole query weights, so that whatever runs a query, stock Anserini included, reports the same scores.

An n-th root of n operands makes a product grow with the scale S as a linear leaf does, and so does any product whose
power · n is its root; so one scale for all leaves keeps them in proportion. A product that grows with another power g
of the scale has its weight multiplied by S¹⁻ᵍ. Score fusion gives every leaf a scale of its own.

The scale is small because stock Anserini takes a whole weight as that many repeated tokens. On the dev split of
FilmSets, with BM25 impacts and the default operators, 100 is the smallest of 5, 10, 20, 32, 51.2, 64 and 100 to keep
nDCG@10 and R@100 of every template within 0.0005 of what unrounded weights give: 0.0002 and 0.0003, with 99.3 % or more
of the first ten hits the same. What is left is ties (128 changes nDCG@10 by 0.0006 in a template, 256 by 0.0001).
``benchmarks/weight_scale.py`` makes the table.
"""

from __future__ import annotations

import math

from pyserini_compneg.compose.scoring import Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.vectors import SparseVector, complement_term, is_complement

WEIGHT_SCALE = 100.0
LARGEST_QUANTISED = 2**31 - 1
"""What Anserini takes: weights are Java's ``int`` there."""


def quantised(node: ScoringNode, weight_scale: float = WEIGHT_SCALE) -> ScoringNode:
    """The tree with the weight round(w · weight_scale) for every w, half to even; zeros are dropped.

    A leaf never loses what it wants: if all its positive weights, those of complements aside, would become 0, the
    heaviest become 1, and their complements −1.

    Args:
        node: The query.
        weight_scale: What the weights are multiplied by.

    Raises:
        CompositionError: A scale that is no finite number above 0, or a weight that becomes larger than 2³¹ − 1.

    >>> quantised(Linear({"birds": 1.504, "fly": 0.004, "parrots": -0.25}))
    Linear(weights={'birds': 150.0, 'parrots': -25.0})
    >>> quantised(Linear({"birds": 0.003, "fly": 0.001}))
    Linear(weights={'birds': 1.0})
    """
    checked_scale(weight_scale)
    match node:
        case Linear(weights):
            return Linear(whole(weights, weight_scale))
        case Product(operands, power, root, weight):
            scaled = tuple(whole(operand, weight_scale) for operand in operands)
            proportion = 1.0 if math.isclose(node.degree, 1) else weight_scale ** (1 - node.degree)
            return Product(scaled, power, root, weight * proportion)
        case Max(children):
            return Max(tuple(quantised(child, weight_scale) for child in children))
        case Sum(children):
            return Sum(tuple(quantised(child, weight_scale) for child in children))


def checked_scale(weight_scale: float) -> float:
    """The scale, if it is a finite number above 0."""
    number = isinstance(weight_scale, (int, float)) and not isinstance(weight_scale, bool)
    if not number or not 0 < weight_scale < math.inf:
        raise CompositionError(f"weight_scale must be a finite number above 0, got {weight_scale!r}")
    return weight_scale


def whole(weights: SparseVector, weight_scale: float, limit: float = LARGEST_QUANTISED) -> dict[str, int]:
    """The weights of one leaf, as :func:`quantised` has them.

    Args:
        weights: Terms and weights.
        weight_scale: What the weights are multiplied by.
        limit: The largest whole weight.

    Raises:
        CompositionError: A weight that becomes larger than the limit.

    >>> whole({"birds": 1.504, "fly": 0.004}, 100.0)
    {'birds': 150}
    """
    scaled = {term: weight * weight_scale for term, weight in weights.items()}
    for term, weight in scaled.items():
        if abs(weight) > limit:
            remedy = f"the limit is {limit}; lower the weight scale"
            raise CompositionError(
                f"the weight of {term!r} becomes {weight:g} at weight scale {weight_scale:g}, {remedy}"
            )
    rounded = {term: round(weight) for term, weight in scaled.items()}
    wanted = {term: weight for term, weight in weights.items() if weight > 0 and not is_complement(term)}
    if wanted and not any(rounded[term] for term in wanted):
        heaviest = [term for term, weight in wanted.items() if weight == max(wanted.values())]
        rounded |= dict.fromkeys(heaviest, 1)
        rounded |= {name: -1 for name in map(complement_term, heaviest) if name in weights}
    return {term: weight for term, weight in rounded.items() if weight}
