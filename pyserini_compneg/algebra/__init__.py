"""Linear algebra operations: what union, intersection and difference do to the vectors of their operands."""

from pyserini_compneg.algebra.difference import DIFFERENCES, VectorDifference
from pyserini_compneg.algebra.intersection import (
    INTERSECTIONS,
    PAIR_SIGN,
    TOP_TERMS,
    cpt_operands,
    cpt_pairs,
    document_pairs,
)
from pyserini_compneg.algebra.union import UNIONS, VectorUnion

__all__ = [
    "DIFFERENCES",
    "INTERSECTIONS",
    "PAIR_SIGN",
    "TOP_TERMS",
    "UNIONS",
    "VectorDifference",
    "VectorUnion",
    "cpt_operands",
    "cpt_pairs",
    "document_pairs",
]
