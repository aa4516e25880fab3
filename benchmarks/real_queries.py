"""Queries of real texts: topics whose expressions have atoms, such as those of FilmSets, composed for an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from synthetic import Query

from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.quantisation import whole
from pyserini_compneg.compose.trees import positive_weights
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics.topics import read_topics


def real_queries(index: Path, topics: Path, count: int) -> dict[str, list[Query]]:
    """The first topics of each form, composed by the encoder of the index.

    The positive vector of a query has the largest weight that one of its leaves gives a term.
    """
    asked = [topic.expression for topic in read_topics(topics) if topic.expression]
    kinds = {}
    with SignedImpactSearcher(index) as searcher:
        for kind, (takes, operators) in _KINDS.items():
            nodes = searcher.compose([expression for expression in asked if takes(expression)][:count], operators)
            kinds[kind] = [Query(node, whole(positive_weights(node), 1.0)) for node in nodes]
    return kinds


def _two_atoms(form: type[Expression]) -> Callable[[Expression], bool]:
    return lambda expression: isinstance(expression, form) and _operands(expression) == 2


def _operands(expression: Expression) -> int:
    """How many atoms it joins; 0 for an expression with others in it."""
    match expression:
        case Difference(Atom(), Atom()):
            return 2
        case Union(operands) | Intersection(operands) if all(isinstance(operand, Atom) for operand in operands):
            return len(operands)
    return 0


_CONJUNCTION = _two_atoms(Intersection)
_KINDS: dict[str, tuple[Callable[[Expression], bool], Operators]] = {
    "positive": (_CONJUNCTION, Operators("vanilla", "vanilla", "vanilla")),
    "signed": (_two_atoms(Difference), Operators(difference="disentangled")),
    "cpt": (_CONJUNCTION, Operators(intersection="cpt")),
    "cpt beside maxpool": (_CONJUNCTION, Operators()),
    "dismax": (lambda expression: isinstance(expression, Union) and _operands(expression) > 0, Operators()),
}
