"""Composition: makes the query that an index runs from an expression, an encoder and a choice of operators."""

from pyserini_compneg.compose.adapting import CPT_FORMS, adapted
from pyserini_compneg.compose.atom_vectors import QueryEncoder
from pyserini_compneg.compose.json_form import composed_line, from_json, query_line, to_json
from pyserini_compneg.compose.operators import (
    DEFAULT_OPERATORS,
    DIFFERENCES,
    INTERSECTIONS,
    OPERATOR_SETS,
    UNIONS,
    Operators,
)
from pyserini_compneg.compose.quantisation import WEIGHT_SCALE, quantised
from pyserini_compneg.compose.queries import ParsedQuery, Query, compose_queries, compose_query, query_pairs, query_text
from pyserini_compneg.compose.query_terms import QueryTerm, query_terms
from pyserini_compneg.compose.resolve import TopScores
from pyserini_compneg.compose.rewrite import alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.compose.scoring import All, Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.compose.trees import is_empty

__all__ = [
    "All",
    "CPT_FORMS",
    "DEFAULT_OPERATORS",
    "DIFFERENCES",
    "Damped",
    "Excluding",
    "INTERSECTIONS",
    "UNIONS",
    "Linear",
    "Max",
    "OPERATOR_SETS",
    "Operators",
    "ParsedQuery",
    "Product",
    "Query",
    "QueryEncoder",
    "QueryTerm",
    "ScoringNode",
    "Sum",
    "TopScores",
    "WEIGHT_SCALE",
    "verbalised",
    "without_differences",
    "conjunction",
    "alternatives",
    "compose_queries",
    "compose_query",
    "composed_line",
    "from_json",
    "is_empty",
    "adapted",
    "quantised",
    "query_line",
    "query_pairs",
    "query_terms",
    "query_text",
    "to_json",
]
