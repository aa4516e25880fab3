"""Composition: an expression, an encoder and a choice of operators make the query that is run."""

from pyserini_compneg.compose.composer import compose_queries, compose_query
from pyserini_compneg.compose.json_form import composed_line, from_json, to_json
from pyserini_compneg.compose.operators import (
    DEFAULT_OPERATORS,
    DIFFERENCES,
    INTERSECTIONS,
    UNIONS,
    Operators,
)
from pyserini_compneg.compose.protocol import QueryEncoder
from pyserini_compneg.compose.scoring import (
    Linear,
    Max,
    Product,
    ScoringNode,
    Sum,
    evaluate,
    is_empty,
    leaf_vectors,
    matches,
    positive_weights,
    terms,
)

__all__ = [
    "DEFAULT_OPERATORS",
    "DIFFERENCES",
    "INTERSECTIONS",
    "UNIONS",
    "Linear",
    "Max",
    "Operators",
    "Product",
    "QueryEncoder",
    "ScoringNode",
    "Sum",
    "compose_queries",
    "compose_query",
    "composed_line",
    "evaluate",
    "from_json",
    "is_empty",
    "leaf_vectors",
    "matches",
    "positive_weights",
    "terms",
    "to_json",
]
