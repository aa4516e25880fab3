"""Functions on scoring trees: walks and maps, and the terms by which a tree finds documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyserini_compneg.compose.scoring import All, Damped, Excluding, Linear, Product, ScoringNode, Sum
from pyserini_compneg.support.vectors import SparseVector, max_pool, positive_part


def with_wanted(node: ScoringNode, change: Callable[[ScoringNode], ScoringNode]) -> ScoringNode:
    count = len(node.wanted)
    return node.with_children([*map(change, node.wanted), *node.children[count:]])


def nodes(node: ScoringNode) -> Iterator[ScoringNode]:
    """Yields the node and all nodes below it, from left to right."""
    yield node
    for child in node.children:
        yield from nodes(child)


def is_open(node: ScoringNode) -> bool:
    """Whether the node, apart from its children, lacks scores that only an index knows."""
    return (isinstance(node, Damped) and not node.best) or (isinstance(node, Excluding) and node.share > 0)


def summands(node: ScoringNode) -> tuple[ScoringNode, ...]:
    """The children of a sum. Any other node is its own only summand."""
    return node.children if isinstance(node, Sum) else (node,)


def summed(*parts: ScoringNode) -> ScoringNode:
    """The sum of the parts. Empty vectors are left out, and a sum of one is that part."""
    known = tuple(part for part in parts if not isinstance(part, Linear) or part.weights)
    if len(known) > 1:
        return Sum(known)
    return known[0] if known else Linear({})


def leaf_vectors(node: ScoringNode) -> Iterator[SparseVector]:
    """Yields the weights of every linear leaf and of every operand of a product, from left to right."""
    for part in nodes(node):
        if isinstance(part, Linear):
            yield part.weights
        elif isinstance(part, Product):
            yield from part.operands


def positive_weights(node: ScoringNode) -> dict[str, float]:
    """One positive vector for a whole tree: for each term, the largest weight that a wanted leaf of the tree has.

    Products of negative weight are ignored.

    >>> positive_weights(Sum((Product(({"a": 1.0}, {"b": 2.0})), Linear({"a": 0.5, "c": -1.0}))))
    {'a': 1.0, 'b': 2.0}
    """
    match node:
        case Linear(weights):
            return positive_part(weights)
        case Product(operands):
            return max_pool(operands) if node.weight > 0 else {}
    return max_pool(map(positive_weights, node.wanted))


def is_empty(node: ScoringNode) -> bool:
    """Whether no document can match, because no term has a positive weight."""
    return not (isinstance(node, All) or positive_weights(node))


def kept_terms(*nodes: ScoringNode) -> frozenset[str]:
    """The terms of positive weight by which the wanted parts of queries find documents.

    >>> sorted(kept_terms(Sum((Product(({"a": 1.0}, {"b": 1.0})), Linear({"c": 1.0, "x": 0.1}, kept="c")))))
    ['a', 'b', 'c']
    """
    terms: set[str] = set()
    for node in nodes:
        terms |= kept_terms(*node.wanted)
        if isinstance(node, Linear):
            terms.update(term for term in positive_part(node.weights) if node.kept is None or term in node.kept)
        elif isinstance(node, Product) and node.weight > 0:
            terms.update(*node.operands)
    return frozenset(terms)
