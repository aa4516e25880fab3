"""Linear algebra operations: what union, intersection and difference do to the vectors of their operands."""

from pyserini_compneg.algebra.difference import DIFFERENCES, VectorDifference
from pyserini_compneg.algebra.intersection import (
    INTERSECTIONS,
    TOP_TERMS,
    cpt_operands,
    cpt_pairs,
    document_pairs,
)
from pyserini_compneg.algebra.pseudo_terms import (
    COMPLEMENT_SIGN,
    PAIR_SIGN,
    complement_term,
    is_pseudo_term,
    pair_term,
    signed_query,
)
from pyserini_compneg.algebra.union import UNIONS, VectorUnion

__all__ = [
    "COMPLEMENT_SIGN",
    "DIFFERENCES",
    "INTERSECTIONS",
    "PAIR_SIGN",
    "TOP_TERMS",
    "UNIONS",
    "VectorDifference",
    "VectorUnion",
    "complement_term",
    "cpt_operands",
    "cpt_pairs",
    "document_pairs",
    "is_pseudo_term",
    "pair_term",
    "signed_query",
]
