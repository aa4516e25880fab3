"""A ∩ B as vectors: sums, and Combined Pseudo-Terms (CPT) in two forms that score alike.

CPT scores the joint occurrence of terms, one of A with one of B. The materialised form has a pseudo-term for each pair.
The factored form never builds a pair:

    Σᵢⱼ √(aᵢbⱼ) · √(dᵢdⱼ)  =  (Σᵢ √(aᵢdᵢ)) · (Σⱼ √(bⱼdⱼ)),

so the operands' own terms are enough, on an ordinary index.

Source: Krasakis, Yates, Kanoulas, Eq. 6 to 8, the norm in Eq. 8 read as L1, a sum over pairs. Read as L2 it factorises,
too, and is the geometric mean of the scores of the operands' top terms, but no sum over pairs:

    √(Σᵢⱼ (√(aᵢbⱼ) · √(dᵢdⱼ))²)  =  √((Σᵢ aᵢdᵢ) · (Σⱼ bⱼdⱼ)).

Only positive weights take part: a root of a negative one is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from types import MappingProxyType

from pyserini_compneg.algebra.pseudo_terms import pair_term
from pyserini_compneg.algebra.union import UNIONS, VectorUnion
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.vectors import SparseVector, positive_part, top_terms

TOP_TERMS = 5

INTERSECTIONS: Mapping[str, VectorUnion] = MappingProxyType({name: UNIONS[name] for name in ("addition", "maxpool")})
"""The operators that give one vector of plain terms; the paper's ablations use those of the union."""


def cpt_operands(vectors: Iterable[SparseVector], top: int = TOP_TERMS) -> list[dict[str, float]]:
    """The factored form: each operand's ``top`` heaviest positive terms.

    >>> cpt_operands([{"birds": 1.0, "andes": 0.5, "colombia": 2.0}, {"parrots": 1.0, "fish": -1.0}], top=2)
    [{'colombia': 2.0, 'birds': 1.0}, {'parrots': 1.0}]
    """
    return [top_terms(positive_part(vector), top) for vector in vectors]


def cpt_pairs(vectors: Sequence[SparseVector], top: int = TOP_TERMS) -> dict[str, float]:
    """The materialised form of A ⊗ B, Eq. 6: pseudo-terms with weights √(aᵢbⱼ).

    The pairs (s, t) and (t, s) are one pseudo-term whose weights add up; the pair of a term with itself is the term.

    Args:
        vectors: The two operands.
        top: How many of the heaviest positive terms of each operand take part.

    Raises:
        CompositionError: Other than two operands; the paper defines pairs only.

    >>> cpt_pairs([{"birds": 1.0, "colombia": 4.0}, {"birds": 1.0}])
    {'birds∩colombia': 2.0, 'birds': 1.0}
    """
    if len(vectors) != 2:
        remedy = "use the factored form (--cpt factored), which takes any number"
        raise CompositionError(f"pseudo-terms are pairs, of two operands, got {len(vectors)} operands; {remedy}")
    a, b = cpt_operands(vectors, top)
    pairs: dict[str, float] = {}
    for s, weight_a in a.items():
        for t, weight_b in b.items():
            pair = pair_term(s, t)
            pairs[pair] = pairs.get(pair, 0.0) + math.sqrt(weight_a * weight_b)
    return pairs


def document_pairs(vector: SparseVector, top: int) -> dict[str, float]:
    """D ⊗ D, Eq. 7: what an index of pseudo-terms holds for a document.

    Args:
        vector: The document's impacts.
        top: How many of its heaviest terms take part; every query term beyond them finds no pair.

    >>> document_pairs({"birds": 4.0, "colombia": 9.0}, top=5)
    {'colombia': 9.0, 'birds∩colombia': 6.0, 'birds': 4.0}
    """
    terms = top_terms(positive_part(vector), top)
    return {
        pair_term(s, t): terms[s] if s == t else math.sqrt(terms[s] * terms[t])
        for s, t in combinations_with_replacement(terms, 2)
    }
