"""From weights to impacts, the whole numbers that Lucene keeps as term frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.lucene import LARGEST_IMPACT, LONGEST_TERM_BYTES

RESERVED = ("∩", "¬")
"""Signs of pseudo-terms: ``a∩b`` is a pair, ``¬t`` the complement of t."""


def quantize(vector: Mapping[str, float], impact_scale: float) -> dict[str, int]:
    """round(weight * impact_scale), half to even; what rounds to 0 is dropped.

    >>> quantize({"bird": 0.5, "fly": 0.001}, 256)
    {'bird': 128}
    """
    impacts = ((term, round(weight * impact_scale)) for term, weight in vector.items())
    return {term: impact for term, impact in impacts if impact}


def checked_impacts(vector: Mapping[str, Any], impact_scale: float, source: str) -> dict[str, int]:
    """The impacts of a vector that came with its document.

    Args:
        vector: Terms and weights.
        impact_scale: With 1 the weights must be whole numbers already.
        source: ``path:line``.

    Raises:
        EncodingError: A term that is no single word or holds a reserved sign, or a weight that is no positive finite
            number, is fractional where it must be whole, or gives an impact that is too large.
    """
    for term, weight in vector.items():
        if term.split() != [term] or any(sign in term for sign in RESERVED):
            raise EncodingError(f"{source}: the term {term!r} must be without white space and without ∩ and ¬")
        if len(term.encode()) > LONGEST_TERM_BYTES:
            raise EncodingError(f"{source}: the term {term[:20]!r}... has more than {LONGEST_TERM_BYTES} bytes")
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise EncodingError(f"{source}: the weight of {term!r} must be a number, got {weight!r}")
        if not 0 <= weight <= LARGEST_IMPACT / impact_scale:
            raise EncodingError(
                f"{source}: the weight of {term!r} must be from 0 to {LARGEST_IMPACT / impact_scale:g}, got {weight!r}"
            )
        if impact_scale == 1 and weight != int(weight):
            raise EncodingError(
                f"{source}: the weight of {term!r} must be a whole number, got {weight!r}; for fractional weights give "
                "--impact-scale, for SPLADE 51.2, which is Pyserini's round(weight / 5 * 256)"
            )
    return quantize(vector, impact_scale)
