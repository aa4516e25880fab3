"""Set expressions over texts: the tree, its query language and its other written forms."""

from pyserini_compneg.expression.filters import ID, Filter
from pyserini_compneg.expression.json_tree import JsonExpression, from_json, to_json
from pyserini_compneg.expression.marks import TEMPLATES, from_marks, verbalise
from pyserini_compneg.expression.syntax import format_expression, parse
from pyserini_compneg.expression.tree import (
    MAX_DEPTH,
    Atom,
    Difference,
    Exclusion,
    Expression,
    Intersection,
    Union,
    atoms,
    leaves,
)

__all__ = [
    "ID",
    "MAX_DEPTH",
    "TEMPLATES",
    "Atom",
    "Difference",
    "Exclusion",
    "Expression",
    "Filter",
    "Intersection",
    "JsonExpression",
    "Union",
    "atoms",
    "format_expression",
    "from_json",
    "from_marks",
    "leaves",
    "parse",
    "to_json",
    "verbalise",
]
