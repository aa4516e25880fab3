"""A composed query as one list of terms and weights, for people and tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from heapq import nlargest
from typing import NamedTuple

from pyserini_compneg.compose.quantisation import WEIGHT_SCALE, checked_scale
from pyserini_compneg.compose.scoring import All, Damped, Linear, Product, ScoringNode, Sum
from pyserini_compneg.support.vectors import SparseVector, add, pair_term, scale

_MOST_TUPLES = 4096
_MOST_TERMS_OF_TUPLES = 1 << 16


class QueryTerm(NamedTuple):
    """A term, or ``a∩b`` for a tuple of terms, and its signed weight in the unit of the encoder."""

    term: str
    weight: float


def query_terms(node: ScoringNode, weight_scale: float = WEIGHT_SCALE) -> list[QueryTerm]:
    """The signed weights of a query, largest magnitude first, equal weights by term. Terms that cancel are left out.

    A conjunction is shown by its pseudo-terms. ``a∩b`` weighs √(a·b), and a tuple of n terms weighs the n-th root of
    the product of their weights. A product with another power or root is shown in the same way, so that all weights
    have one unit. There, a repeated operand counts once, and only the sign of the product's own weight counts. The
    weights of a sum add up. In a maximum a term has its weight of largest magnitude. Terms that damp a score are
    multiplied by −λ. Terms that exclude documents or are required have no weights.

    Args:
        node: The composed query.
        weight_scale: The factor by which the weights were multiplied before rounding; 1 if they are not scaled.

    Raises:
        QueryError: The scale is not a finite number above 0.

    Source: Krasakis, Yates, Kanoulas, Eq. 6, extended to n-th roots. Of a conjunction, the 4,096 heaviest tuples are
    shown. If it has more than 16 operands, fewer are shown: as many as hold 65,536 terms.

    >>> query_terms(Sum((Product(({"birds": 400.0}, {"andes": 100.0})), Linear({"parrots": -300.0}))))
    [QueryTerm(term='parrots', weight=-3.0), QueryTerm(term='andes∩birds', weight=2.0)]
    """
    checked_scale(weight_scale)
    weights = _weights(node)
    ranked = sorted(weights, key=lambda term: (-abs(weights[term]), term))
    return [QueryTerm(term, weights[term] / weight_scale) for term in ranked]


def _weights(node: ScoringNode) -> SparseVector:
    match node:
        case All():
            return {}
        case Linear(weights):
            return weights
        case Product(operands):
            if node.is_sum_over_tuples:
                return scale(_tuples(operands), node.weight)
            return scale(_tuples([operand for operand, _ in node.factors]), math.copysign(1, node.weight))
        case Sum(children):
            return reduce(add, map(_weights, children))
        case Damped(child, excluded, _, weight):
            return add(_weights(child), reduce(_larger, map(_weights, excluded)), -weight)
    return reduce(_larger, map(_weights, node.wanted))


def _larger(a: SparseVector, b: SparseVector) -> dict[str, float]:
    return {**a, **{term: max(a.get(term, 0.0), weight, key=abs) for term, weight in b.items()}}


def _tuples(operands: Sequence[SparseVector]) -> dict[str, float]:
    """The heaviest tuples of one term of each operand.

    Operands are joined one after another. If the i-th heaviest tuple so far is joined with the j-th heaviest term of
    the next operand, at least i · j − 1 other tuples are as heavy. So only tuples with i · j up to the limit are
    formed.
    """
    most = min(_MOST_TUPLES, max(1, _MOST_TERMS_OF_TUPLES // len(operands)))
    tuples: list[tuple[float, tuple[str, ...]]] = [(1.0, ())]
    for operand in operands:
        roots = sorted(((weight ** (1 / len(operands)), term) for term, weight in operand.items()), reverse=True)
        longer = (
            (amount * root, (*terms, term))
            for i, (amount, terms) in enumerate(tuples, 1)
            for root, term in roots[: most // i]
        )
        tuples = nlargest(most, longer)
    totals: dict[str, float] = defaultdict(float)
    for amount, terms in tuples:
        totals[pair_term(*terms)] += amount
    return totals
