"""A ∪ B as one vector.

Source: Krasakis, Yates, Kanoulas, Section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from pyserini_compneg.support.vectors import SparseVector, add, max_pool

DISMAX_POOLED = 0.25
"""The share of ``maxpool`` that ``dismax`` adds to the best score, chosen on QUEST train, FilmSets and ComLQ dev."""

VectorUnion: TypeAlias = Callable[[Iterable[SparseVector]], dict[str, float]]


def addition(vectors: Iterable[SparseVector]) -> dict[str, float]:
    """A + B, Eq. 9: a term that several operands share is counted once for each operand.

    >>> addition([{"birds": 1.0, "colombia": 1.0}, {"birds": 1.0, "venezuela": 1.0}])
    {'birds': 2.0, 'colombia': 1.0, 'venezuela': 1.0}
    """
    total: dict[str, float] = {}
    for vector in vectors:
        total = add(total, vector)
    return total


VECTOR_UNIONS: Mapping[str, VectorUnion] = MappingProxyType({"maxpool": max_pool, "addition": addition})
"""The operators, keyed by the names that users choose.

``maxpool`` is Eq. 10, including its maximum with 0. A negative weight survives only if every operand has a negative
weight for the term, so a union forgets a negation inside one operand.
"""
