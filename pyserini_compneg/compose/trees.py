"""The meaning of scoring trees: the score of a document, which tests compare searches with, and the terms of a tree."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.expression import Filter
from pyserini_compneg.support.vectors import SparseVector, max_pool, positive_part

Fields: TypeAlias = Mapping[str, Collection[str | int | float]]
"""The values of a document's filter fields."""

_NO_FIELDS: Fields = MappingProxyType({})


def evaluate(node: ScoringNode, impacts: SparseVector, fields: Fields = _NO_FIELDS) -> float | None:
    """The score of a document, or None if it does not match. A score may be 0 or less.

    Args:
        node: The composed query.
        impacts: The document's terms, with weights above 0.
        fields: The values of the document's filter fields.

    >>> evaluate(Linear({"birds": 1.0, "parrots": -2.0}), {"birds": 3.0, "parrots": 4.0})
    -5.0
    >>> evaluate(Product(({"colombia": 4.0}, {"venezuela": 1.0})), {"colombia": 9.0}) is None
    True
    """
    return _value(node, impacts, fields) if matches(node, impacts, fields) else None


def matches(node: ScoringNode, impacts: SparseVector, fields: Fields = _NO_FIELDS) -> bool:
    """Whether a query finds a document: the document needs a positive term, and in a product one of every operand."""
    match node:
        case Linear(weights):
            return any(weight > 0 and term in impacts for term, weight in weights.items())
        case Product(operands):
            return node.weight > 0 and all(not impacts.keys().isdisjoint(operand) for operand in operands)
        case Max(children) | Sum(children):
            return any(matches(child, impacts, fields) for child in children)
        case Damped(child):
            return matches(child, impacts, fields)
        case Excluding(child):
            return matches(child, impacts, fields) and not _excludes(node, impacts, fields)


def _value(node: ScoringNode, impacts: SparseVector, fields: Fields) -> float:
    match node:
        case Linear(weights):
            return math.fsum(weight * impacts[term] for term, weight in weights.items() if term in impacts)
        case Product(operands, _, root):
            product = math.prod(_sum_of_powers(operand, impacts, node.exponent) for operand in operands)
            return node.weight * (product if root == 1 else product ** (1 / root))
        case Max(children):
            matching = (child for child in children if matches(child, impacts, fields))
            return max((_value(child, impacts, fields) for child in matching), default=0.0)
        case Sum(children):
            return math.fsum(_value(child, impacts, fields) for child in children)
        case Damped(child, excluded, bests):
            ratios = (_value(part, impacts, fields) / best for part, best in zip(excluded, bests, strict=True))
            return node.lowered(_value(child, impacts, fields), max(ratios))
        case Excluding(child):
            return 0.0 if _excludes(node, impacts, fields) else _value(child, impacts, fields)


def _excludes(node: Excluding, impacts: SparseVector, fields: Fields) -> bool:
    return not all(matches(part, impacts) for part in node.required) or any(
        part.allows(fields) if isinstance(part, Filter) else _value(part, impacts, fields) > limit
        for part, limit in zip(node.excluded, node.above, strict=True)
    )


def _sum_of_powers(weights: SparseVector, impacts: SparseVector, power: float) -> float:
    return math.fsum((weight * impacts[term]) ** power for term, weight in weights.items() if term in impacts)


def nodes(node: ScoringNode) -> Iterator[ScoringNode]:
    """Yields the node and all nodes below it, from left to right."""
    yield node
    below: tuple[ScoringNode, ...] = ()
    if isinstance(node, (Max, Sum)):
        below = node.children
    elif isinstance(node, Damped):
        below = (node.child, *node.excluded)
    elif isinstance(node, Excluding):
        below = (node.child, *(part for part in node.excluded if not isinstance(part, Filter)), *node.required)
    for child in below:
        yield from nodes(child)


def summands(node: ScoringNode) -> tuple[ScoringNode, ...]:
    """The children of a sum. Any other node is its own only summand."""
    return node.children if isinstance(node, Sum) else (node,)


def leaf_vectors(node: ScoringNode) -> Iterator[SparseVector]:
    """Yields the weights of every linear leaf and of every operand of a product, from left to right."""
    for part in nodes(node):
        if isinstance(part, Linear):
            yield part.weights
        elif isinstance(part, Product):
            yield from part.operands


def positive_weights(node: ScoringNode) -> dict[str, float]:
    """One positive vector for a whole tree: for each term, the largest weight that a leaf of the tree has.

    Products of negative weight, and parts that damp a score, exclude documents or are required, are ignored.

    >>> positive_weights(Sum((Product(({"a": 1.0}, {"b": 2.0})), Linear({"a": 0.5, "c": -1.0}))))
    {'a': 1.0, 'b': 2.0}
    """
    match node:
        case Linear(weights):
            return positive_part(weights)
        case Product(operands):
            return max_pool(operands) if node.weight > 0 else {}
        case Max(children) | Sum(children):
            return max_pool(map(positive_weights, children))
        case Damped(child) | Excluding(child):
            return positive_weights(child)


def is_empty(node: ScoringNode) -> bool:
    """Whether no document can match, because no term has a positive weight."""
    return not positive_weights(node)


def kept_terms(*nodes: ScoringNode) -> frozenset[str]:
    """The terms of positive weight by which the wanted parts of queries find documents.

    >>> sorted(kept_terms(Sum((Product(({"a": 1.0}, {"b": 1.0})), Linear({"c": 1.0, "x": 0.1}, kept="c")))))
    ['a', 'b', 'c']
    """
    terms: set[str] = set()
    for node in nodes:
        match node:
            case Linear(weights, kept):
                terms.update(term for term in positive_part(weights) if kept is None or term in kept)
            case Product(operands) if node.weight > 0:
                terms.update(*operands)
            case Max(children) | Sum(children):
                terms |= kept_terms(*children)
            case Damped(child) | Excluding(child):
                terms |= kept_terms(child)
    return frozenset(terms)
