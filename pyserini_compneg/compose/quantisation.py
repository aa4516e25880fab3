"""Rounds query weights to whole numbers, so that every engine, including stock Anserini, reports the same scores.

One scale S for all leaves keeps them in proportion. The score of a linear leaf grows with S, the score of a product
with Sᵍ, where g is its degree. So the weight of a product is multiplied by S¹⁻ᵍ, which is 1 for Combined Pseudo-Terms.
Score fusion gives each leaf a scale of its own.

The scale is small because stock Anserini represents a whole weight by that many repeated tokens. On the dev split of
FilmSets, with BM25 impacts and the default operators, ``benchmarks/weight_scale.py`` compares scales from 5 to 1,000
with unrounded weights. 100 is the smallest that changes nDCG@10 and R@100 of every template by less than 0.0005: by
0.0002 and 0.0003 at most. At least 99.3 % of the first ten hits stay the same. The other hits differ by ties, so larger
scales are not always better: 128 changes nDCG@10 of one template by 0.0006, 256 by 0.0001.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import replace

from pyserini_compneg.compose.scoring import Linear, Product, ScoringNode
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import (
    SparseVector,
    complement_term,
    is_complement,
    is_number,
    is_pair,
    positive_part,
)

WEIGHT_SCALE = 100.0
LARGEST_QUANTISED = 2**31 - 1
"""The largest weight that Anserini takes, because Anserini stores a weight in a Java ``int``."""


def quantised(node: ScoringNode, weight_scale: float = WEIGHT_SCALE) -> ScoringNode:
    """The tree with the weight round(w · weight_scale) for every w, half to even. Zeros are dropped.

    Rounding must not empty a wanted part, nor let a term of an excluded part find documents. So a leaf has *wanted*
    terms, of which at least one stays. If the weights of all of them would become 0, the heaviest become 1, and the
    complements of the heaviest −1. Other weights may become 0. The wanted terms have positive weights and are no
    complements. They are:

    - In a vector, its ``kept`` terms. They come from the wanted part of a query; a difference may give positive weights
      to other terms. A vector that a difference adds to a tree has none.
    - In an operand of a product, and in a part that damps a score, excludes documents or is required, all terms. Its
      scores are compared only with scores of the same rounded part.
    - In a vector that was not composed here, all terms.

    Args:
        node: The composed query.
        weight_scale: The factor of all weights.

    Raises:
        QueryError: A scale that is not a finite number above 0, or a weight that becomes larger than 2³¹ − 1.

    >>> quantised(Linear({"birds": 1.504, "fly": 0.004, "parrots": -0.25}))
    Linear(weights={'birds': 150.0, 'parrots': -25.0})
    >>> quantised(Linear({"birds": 0.003, "fly": 0.001}))
    Linear(weights={'birds': 1.0})
    >>> quantised(Linear({"birds": 0.001, "parrots": 0.003, "fly": -0.25}, kept={"birds"}))
    Linear(weights={'birds': 1.0, 'fly': -25.0})
    """
    checked_scale(weight_scale)
    if isinstance(node, Linear):
        return Linear(whole(node.weights, weight_scale, kept=node.kept))
    if isinstance(node, Product):
        scaled = tuple(whole(operand, weight_scale) for operand in node.operands)
        proportion = 1.0 if math.isclose(node.degree, 1) else weight_scale ** (1 - node.degree)
        return replace(node, operands=scaled, weight=node.weight * proportion)
    return node.with_children([quantised(child, weight_scale) for child in node.children]).rescaled(weight_scale)


def with_rounded_pairs(node: ScoringNode, pair_scale: int) -> ScoringNode:
    """A rounded query over pairs, for an index that multiplies the impacts of pairs by ``pair_scale``, a power of two.

    The weights of pairs are divided by it. Then all weights become multiples of 1 / pair_scale², and none becomes 0. So
    a pair's weight is as fine as its impacts in the index, and :mod:`topics.token_form` can make the weights whole.

    >>> with_rounded_pairs(Linear({"andes∩birds": 70.7, "birds": 50.0}), 4)
    Linear(weights={'andes∩birds': 17.6875, 'birds': 50.0})
    """
    if isinstance(node, Linear):
        fine = pair_scale**2
        exact = {term: weight * (pair_scale if is_pair(term) else fine) for term, weight in node.weights.items()}
        return Linear({term: (round(one) or math.copysign(1, one)) / fine for term, one in exact.items()})
    return node.with_children([with_rounded_pairs(child, pair_scale) for child in node.children])


def checked_scale(weight_scale: float) -> float:
    """The scale, if it is a finite number above 0."""
    if not is_number(weight_scale) or not 0 < weight_scale < math.inf:
        raise QueryError(f"weight_scale must be a finite number above 0, got {weight_scale!r}")
    return weight_scale


def whole(
    weights: SparseVector,
    weight_scale: float,
    largest: float = LARGEST_QUANTISED,
    kept: Container[str] | None = None,
) -> dict[str, int]:
    """Rounds the weights of one leaf, by the rules of :func:`quantised`.

    At least one of the terms ``kept`` stays. None means all terms with a positive weight.

    >>> whole({"birds": 1.504, "fly": 0.004}, 100.0)
    {'birds': 150}
    """
    scaled = {term: weight * weight_scale for term, weight in weights.items()}
    for term, weight in scaled.items():
        if abs(weight) > largest:
            what = f"the weight of {term!r} becomes {weight:g} at weight scale {weight_scale:g}, the limit is {largest}"
            raise QueryError(what, remedy="lower the weight scale")
    rounded = {term: round(weight) for term, weight in scaled.items()}
    wanted = {
        term: weight
        for term, weight in positive_part(weights).items()
        if not is_complement(term) and (kept is None or term in kept)
    }
    if wanted and not any(rounded[term] for term in wanted):
        heaviest = [term for term, weight in wanted.items() if weight == max(wanted.values())]
        rounded |= dict.fromkeys(heaviest, 1)
        rounded |= {name: -1 for name in map(complement_term, heaviest) if name in weights}
    return {term: weight for term, weight in rounded.items() if weight}
