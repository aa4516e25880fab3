r"""A \ B₁ \ … \ Bₙ as one vector.

Every operator gets all negatives in one call, because some operators cannot process them one after another:

- ``disentangled`` max-pools the negatives: a term that several share is penalised once, with the largest weight.
- ``subtraction``, ``nrf`` and ``constant`` are one operator, which subtracts each negative, as Widdows does
  (Section 4.2), so the order is irrelevant. ``nrf`` has the λ of Salton and Buckley, ``constant`` the λ of Widdows.
- ``orthogonal`` removes the subspace that the negatives span. One projection after another would not remove it, as
  Widdows shows.
- ``elementwise`` is orthogonal negation as the weights in Krasakis et al., Table 2, fit: each term of A loses its share
  of the squared length of the negative. A projection would give weights below 0 to the terms of B that A lacks; the
  table has no such weights.

Each operator has a strength λ, which multiplies the subtracted part. A negative without terms changes nothing.

Source: Krasakis, Yates, Kanoulas, Sections 3.2.2 and 4.2.2; Widdows 2003, Orthogonal Negation in Vector Spaces; Salton
and Buckley 1990, Improving Retrieval Performance by Relevance Feedback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from pyserini_compneg.compose.union import addition
from pyserini_compneg.support.vectors import SparseVector, add, dot, max_pool, norm, scale

VectorDifference: TypeAlias = Callable[[SparseVector, Sequence[SparseVector], float], dict[str, float]]
"""Maps A, the negatives and λ to the vector of A without the negatives."""

# Relative to the length of a vector: a remainder below these limits is a rounding error.
_DEPENDENT = 1e-10
_ROUNDING = 1e-12


def disentangled(a: SparseVector, negatives: Sequence[SparseVector], weight: float = 1.0) -> dict[str, float]:
    """A − λB*, Eq. 5: penalises the terms that B has and A lacks, and keeps A as it is.

    ``negatives`` are the B* = B − 𝟙_A ⊙ B: each negative without the terms of A.

    >>> disentangled({"birds": 1.0, "colombia": 1.0}, [{"venezuela": 1.0}, {"venezuela": 2.0, "peru": 1.0}])
    {'birds': 1.0, 'colombia': 1.0, 'venezuela': -2.0, 'peru': -1.0}
    """
    return add(a, max_pool(filter(None, negatives)), -weight)


def subtraction(a: SparseVector, negatives: Sequence[SparseVector], weight: float = 1.0) -> dict[str, float]:
    """A − λ · Σ Bᵢ: the terms that A shares with a negative lose weight, too.

    >>> subtraction({"birds": 1.0, "colombia": 1.0}, [{"birds": 1.0, "venezuela": 1.0}])
    {'colombia': 1.0, 'venezuela': -1.0}
    """
    return add(a, addition(negatives), -weight)


def orthogonal(a: SparseVector, negatives: Sequence[SparseVector], weight: float = 1.0) -> dict[str, float]:
    """A minus λ · its projection on the span of the negatives, Widdows, Eq. 1 for one negative and Eq. 2 for several.

    With λ = 1 the result is orthogonal to each negative. A term whose weight is only a rounding error is dropped.

    >>> orthogonal({"birds": 1.0, "colombia": 1.0}, [{"birds": 1.0, "venezuela": 1.0}])
    {'birds': 0.5, 'colombia': 1.0, 'venezuela': -0.5}
    >>> orthogonal({"birds": 1.0, "colombia": 1.0}, [{"birds": 3.0, "colombia": 3.0}])
    {}
    """
    remainder = _without_projection(a, _orthogonal_basis(negatives))
    if weight != 1:
        remainder = add(scale(a, 1 - weight), remainder, weight)
    rounding = _ROUNDING * norm(a)
    return {term: value for term, value in remainder.items() if abs(value) > rounding}


def elementwise(a: SparseVector, negatives: Sequence[SparseVector], weight: float = 1.0) -> dict[str, float]:
    """A − λ · A ⊙ B² / (B · B): a term loses the share that it has of B; of several negatives, the largest.

    >>> elementwise({"birds": 1.0, "colombia": 1.0}, [{"birds": 1.0, "venezuela": 1.0}])
    {'birds': 0.5, 'colombia': 1.0}
    """
    shares = max_pool([scale({term: own * own for term, own in b.items()}, 1 / dot(b, b)) for b in negatives if b])
    kept = ((term, own * (1 - weight * shares.get(term, 0.0))) for term, own in a.items())
    return {term: own for term, own in kept if own}


def _orthogonal_basis(vectors: Iterable[SparseVector]) -> list[dict[str, float]]:
    """Gram-Schmidt; a vector that depends on those before it adds no direction."""
    basis: list[dict[str, float]] = []
    for vector in vectors:
        direction = _without_projection(vector, basis)
        if norm(direction) > _DEPENDENT * norm(vector):
            basis.append(direction)
    return basis


def _without_projection(vector: SparseVector, basis: Sequence[SparseVector]) -> dict[str, float]:
    """A − Σ (A·b / |b|²) b over an orthogonal basis, one direction at a time as the modified Gram-Schmidt process does.

    The second round corrects the cancellation errors of the first.
    """
    remainder = dict(vector)
    for direction in (*basis, *basis):
        remainder = add(remainder, direction, -dot(remainder, direction) / dot(direction, direction))
    return remainder


VECTOR_DIFFERENCES: Mapping[str, VectorDifference] = MappingProxyType(
    {
        "disentangled": disentangled,
        "subtraction": subtraction,
        "nrf": subtraction,
        "constant": subtraction,
        "orthogonal": orthogonal,
        "elementwise": elementwise,
    }
)
"""The operators, keyed by the names that users choose."""

DIFFERENCE_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "disentangled": 1.0,
        "subtraction": 1.0,
        "nrf": 0.25,
        "constant": 0.75,
        "orthogonal": 1.0,
        "elementwise": 1.0,
        "damped": 0.5,
    }
)
"""The default λ of each operator. The λ of ``damped`` comes from the same dev splits as its power: a larger λ
finds fewer wanted documents."""
