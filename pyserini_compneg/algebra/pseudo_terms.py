"""Terms beside the vocabulary: the pair ``a∩b`` of two terms, and the complement ``¬t`` of one.

An index holds them where it was built to. A pair's impact says that both terms occur, Eq. 7; a complement's is the
magnitude of a negative weight, which Lucene could not store under the term itself.

Source: Krasakis, Yates, Kanoulas, Section 3.2.2, for the pairs.
"""

from __future__ import annotations

from pyserini_compneg.vectors import SparseVector

PAIR_SIGN = "∩"
COMPLEMENT_SIGN = "¬"


def pair_term(*terms: str) -> str:
    """The pseudo-term of two terms or more, the same in any order; of a term with itself, the term.

    >>> pair_term("venezuela", "colombia"), pair_term("birds", "birds"), pair_term("c", "a", "b", "a")
    ('colombia∩venezuela', 'birds', 'a∩b∩c')
    """
    return PAIR_SIGN.join(sorted(set(terms)))


def complement_term(term: str) -> str:
    """The term that holds negative weights of another.

    >>> complement_term("parrots")
    '¬parrots'
    """
    return COMPLEMENT_SIGN + term


def is_pseudo_term(term: str) -> bool:
    """Whether a term is a pair or a complement. A lone sign is neither: BERT's vocabulary has both as words.

    >>> [is_pseudo_term(term) for term in ("birds", "¬", "∩", "¬birds", "birds∩colombia")]
    [False, False, False, True, True]
    """
    return is_complement(term) or PAIR_SIGN in term[1:-1]


def is_complement(term: str) -> bool:
    """Whether a term holds the negative weights of another."""
    return term.startswith(COMPLEMENT_SIGN) and len(term) > 1


def signed_query(weights: SparseVector) -> dict[str, float]:
    """The weights with which Σ q·d over signed documents comes out as a sum over positive impacts.

    A document holds d > 0 under t, and d < 0 as |d| under ¬t; so q·d is q times the one, or −q times the other.

    >>> signed_query({"birds": 2.0, "parrots": -1.0})
    {'birds': 2.0, '¬birds': -2.0, 'parrots': -1.0, '¬parrots': 1.0}
    """
    return {
        name: value
        for term, weight in weights.items()
        for name, value in ((term, weight), (complement_term(term), -weight))
    }
