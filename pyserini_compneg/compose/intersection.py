"""A ∩ B as vectors: sums, and Combined Pseudo-Terms (CPT) in two forms that score alike.

CPT scores the joint occurrence of terms, one of A with one of B. The materialised form has a pseudo-term for each pair.
The factored form never builds a pair:

    Σᵢⱼ √(aᵢbⱼ) · √(dᵢdⱼ)  =  (Σᵢ √(aᵢdᵢ)) · (Σⱼ √(bⱼdⱼ)),

so the operands' own terms are enough, on an ordinary index.

Source: Krasakis, Yates, Kanoulas, Eq. 6 to 8. The norm in Eq. 8 is read as L1, a sum over pairs. Read as L2 it also
factorises: it is the geometric mean of the scores of the operands' top terms, but not a sum over pairs:

    √(Σᵢⱼ (√(aᵢbⱼ) · √(dᵢdⱼ))²)  =  √((Σᵢ aᵢdᵢ) · (Σⱼ bⱼdⱼ)).

Only positive weights take part: the root of a negative weight is undefined.

For efficiency the paper limits "the number of dimensions (top-terms per compositional query) to 5". This is read in two
ways: as the 5 heaviest terms of each operand, which make 25 pairs, and as the 5 heaviest pairs of the query. The 5
heaviest pairs are not an outer product, so they do not factorise. But each pair is a product of two terms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pyserini_compneg.compose.union import VECTOR_UNIONS, VectorUnion
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import SparseVector, pair_term, positive_part, top_terms

CPT_TERMS = 5

CPT_WEIGHT = 0.5
"""β of ``cpt-maxpool``, chosen on QUEST train and FilmSets dev together; see docs/reference/operators.md."""

VECTOR_INTERSECTIONS: Mapping[str, VectorUnion] = MappingProxyType(
    {name: VECTOR_UNIONS[name] for name in ("addition", "maxpool")}
)
"""The operators that give one vector of plain terms: the operators of the union, which are the paper's ablations."""


def cpt_operands(vectors: Iterable[SparseVector], top: int = CPT_TERMS) -> list[dict[str, float]]:
    """The factored form: each operand's ``top`` heaviest positive terms.

    >>> cpt_operands([{"birds": 1.0, "andes": 0.5, "colombia": 2.0}, {"parrots": 1.0, "fish": -1.0}], top=2)
    [{'colombia': 2.0, 'birds': 1.0}, {'parrots': 1.0}]
    """
    return [top_terms(positive_part(vector), top) for vector in vectors]


def own_terms(vectors: Sequence[SparseVector]) -> list[dict[str, float]]:
    """Each operand without the terms of the other operands: A* and B*, as Eq. 5 defines B* for a difference.

    A term that operands share says nothing about their joint occurrence. An operand that has no term of its own drops
    out.

    >>> own_terms([{"birds": 1.0, "andes": 0.5}, {"birds": 1.0, "colombia": 2.0}, {"birds": 2.0}])
    [{'andes': 0.5}, {'colombia': 2.0}]
    """
    return list(filter(None, _alone(vectors)))


def _alone(vectors: Sequence[SparseVector]) -> list[dict[str, float]]:
    count = Counter(term for vector in vectors for term in vector)
    return [{term: weight for term, weight in vector.items() if count[term] == 1} for vector in vectors]


def distinguishing_terms(vectors: Sequence[SparseVector], top: int = CPT_TERMS) -> list[dict[str, float]]:
    """For each operand, its ``top`` heaviest terms that no other operand has; if there are none, of all its terms.

    ``cheese AND goat cheese`` asks for cheese and for goat. A document has an operand if it has one of these terms. A
    term of weight 0 is in no document, but no other operand replaces it.

    >>> distinguishing_terms([{"cheese": 1.0}, {"goat": 2.0, "cheese": 1.0}, {}, {"zebu": 0.0, "cheese": 1.0}])
    [{'cheese': 1.0}, {'goat': 2.0}, {}, {}]
    """
    return [
        top_terms(positive_part(alone or vector), top) for alone, vector in zip(_alone(vectors), vectors, strict=True)
    ]


def pairwise(operands: Sequence[SparseVector]) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The joint occurrence of all pairs of n operands that share no term, as n − 1 products of two vectors.

    Let Sᵢ be the sum over the terms of operand i. The operands share no term, so Σᵢ Sᵢ is the sum over the terms of all
    of them. So all pairs with one operand in the first half and one in the second half are one product.

    >>> pairwise([{"birds": 1.0}, {"andes": 0.5}, {"colombia": 2.0}])
    [({'andes': 0.5}, {'colombia': 2.0}), ({'birds': 1.0}, {'andes': 0.5, 'colombia': 2.0})]
    """
    if len(operands) < 2:
        return []
    halves = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    first, second = ({term: weight for one in half for term, weight in one.items()} for half in halves)
    return [*pairwise(halves[0]), *pairwise(halves[1]), (first, second)]


def heaviest_tuples(vectors: Sequence[SparseVector], count: int = CPT_TERMS) -> list[tuple[dict[str, float], ...]]:
    """The ``count`` heaviest entries of the outer product A ⊗ B ⊗ …, Eq. 6, heaviest first.

    Each entry is given as the operands of its factored form, vectors of a single term. An entry is a position in the
    outer product, so (s, t) and (t, s) are two entries. Equal weights rank by their terms.

    >>> heaviest_tuples([{"birds": 1.0, "colombia": 4.0}, {"andes": 0.5, "birds": 3.0}], count=2)
    [({'colombia': 4.0}, {'birds': 3.0}), ({'birds': 1.0}, {'birds': 3.0})]
    """
    found: list[tuple[float, tuple[tuple[str, float], ...]]] = [(1.0, ())]
    for vector in cpt_operands(vectors, count):  # lighter terms are in no tuple that is returned
        longer = [(weight * own, (*terms, (term, own))) for weight, terms in found for term, own in vector.items()]
        found = sorted(longer, key=lambda one: (-one[0], one[1]))[:count]
    return [tuple({term: weight} for term, weight in terms) for _, terms in found]


def cpt_pairs(vectors: Sequence[SparseVector], top: int = CPT_TERMS) -> dict[str, float]:
    """The materialised form of A ⊗ B, Eq. 6: pseudo-terms with weights √(aᵢbⱼ).

    The pairs (s, t) and (t, s) are one pseudo-term whose weights add up; the pair of a term with itself is the term.
    The paper defines pairs only, so there are two operands.

    >>> cpt_pairs([{"birds": 1.0, "colombia": 4.0}, {"birds": 1.0}])
    {'birds∩colombia': 2.0, 'birds': 1.0}
    """
    if len(vectors) != 2:
        remedy = "use the factored form (--cpt factored), which takes any number"
        raise QueryError(f"pseudo-terms are pairs, of two operands, got {len(vectors)} operands", remedy=remedy)
    a, b = cpt_operands(vectors, top)
    pairs: dict[str, float] = {}
    for s, weight_a in a.items():
        for t, weight_b in b.items():
            pair = pair_term(s, t)
            pairs[pair] = pairs.get(pair, 0.0) + math.sqrt(weight_a * weight_b)
    return pairs
