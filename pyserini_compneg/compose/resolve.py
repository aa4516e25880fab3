"""Closes open scoring trees with scores of an index: the only stage of a query that asks the index before the search.

Composition leaves open what only an index knows: the best scores of what NOT excludes, whether that is a class of
documents, the floor of damping, and the limits of NOT! by scores. The open nodes of all queries are closed together,
the inner ones first: for each level of nesting, one batch of searches for what is excluded, and another one for what is
wanted, of the queries that need a floor. Most exclude a class and need none, and what is wanted takes the most time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from pyserini_compneg.compose.adapting import adapted
from pyserini_compneg.compose.composer import united
from pyserini_compneg.compose.operator_names import Operator
from pyserini_compneg.compose.quantisation import quantised
from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, ScoringNode, Sum
from pyserini_compneg.compose.trees import is_open, nodes, summands, summed
from pyserini_compneg.expression import Filter
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import scale

TopScores: TypeAlias = Callable[[Sequence[ScoringNode], int], Sequence[Sequence[float]]]
"""Maps queries and k to the k best scores of each query in an index, best first."""

_Open: TypeAlias = Damped | Excluding
"""The kinds of nodes that may be open."""

_PAGE = 10
"""How many best scores are looked up for a query."""

_BROAD = 0.8
"""An excluded part is a class of documents if its tenth best score is at least this share of its best score.

This number and the next three were chosen on several dev sets together; see docs/reference/operators.md.
"""

_FLOOR = 4
"""The rank in A whose score is the floor of damping, unless a class is excluded."""

_CONTEXT = 0.25
_BROAD_CONTEXT = 0.1
"""The weight of the context: all parts of a text, excluded ones too. The query that was read from it has the weight 1.
The smaller weight applies if a class is excluded: the larger weight would find its documents."""


def resolved(
    trees: Sequence[ScoringNode],
    union: Operator,
    top_scores: TopScores | None,
    weight_scale: float,
    signed: bool = False,
) -> list[ScoringNode]:
    """The trees without open nodes, not yet rounded. If a tree is open, there must be an index.

    The index is asked with rounded weights, as a search asks it. A union whose alternatives have become vectors is
    composed again, by its operator ``union``; an AND above it has taken the largest weights of the alternatives.
    ``signed``: the index keeps negative weights of documents.
    """
    trees = list(trees)
    while ready := [one for tree in trees for one in _ready(tree, signed)]:
        if top_scores is None:
            raise _no_index(ready[0][0])
        ask = partial(_best_scores, top_scores, weight_scale)
        bests = ask([_excluded(node) for node, _ in ready])
        closed = [_closed(node, signs, best) for (node, signs), best in zip(ready, bests, strict=True)]
        floors = ask([wanted for _, wanted in closed])
        floored = iter([_floored(node, scores) for (node, _), scores in zip(closed, floors, strict=True)])
        trees = [_with_closed(tree, floored, union) for tree in trees]
    return trees


def _is_ready(node: ScoringNode) -> bool:
    return is_open(node) and not any(is_open(below) for child in node.children for below in nodes(child))


def _ready(node: ScoringNode, signed: bool) -> Iterator[tuple[_Open, bool]]:
    """Yields the open nodes above closed ones, and whether negative weights of documents count in their children."""
    if isinstance(node, _Open) and _is_ready(node):
        yield node, signed
        return
    for number, child in enumerate(node.children):
        yield from _ready(child, signed and number < len(node.wanted))


def _best_scores(
    top_scores: TopScores, weight_scale: float, queries: Sequence[Sequence[ScoringNode]]
) -> list[list[list[float]]]:
    """The best scores of each query of some lists, in the unit of weights that are not rounded."""
    asked = [quantised(query, weight_scale) for some in queries for query in some]
    found = iter(top_scores(asked, _PAGE) if asked else ())
    return [[[score / weight_scale for score in next(found)] for _ in some] for some in queries]


def _excluded(node: _Open) -> Sequence[ScoringNode]:
    """The parts whose best scores close a node."""
    return node.excluded if isinstance(node, Damped) else node.scored


def _closed(node: _Open, signed: bool, bests: Sequence[Sequence[float]]) -> tuple[ScoringNode, Sequence[ScoringNode]]:
    """The closed node, and the query whose best scores give its floor, if it needs one.

    A is lowered by the excluded parts that the index has; without any, it is A itself. Unless a class is excluded, the
    best documents of A keep about the score of the fourth document. If A was read from a text, all parts of the text
    are added with a small weight, as context.
    """
    if isinstance(node, Excluding):
        best = iter(max((0.0, *found)) for found in bests)
        limits = (0.0 if isinstance(part, Filter) else node.share * next(best) for part in node.excluded)
        return replace(node, above=tuple(limits), share=0.0), ()
    found = [(part, best) for part, best in zip(node.excluded, bests, strict=True) if best and best[0] > 0]
    if not found:
        return node.child, ()
    is_class = any(len(best) == _PAGE and best[-1] >= _BROAD * best[0] for _, best in found)
    child = _in_context(node, _BROAD_CONTEXT if is_class else _CONTEXT)
    parts, best_scores = tuple(part for part, _ in found), tuple(best[0] for _, best in found)
    return Damped(child, parts, best_scores, node.weight), () if is_class else (adapted(child, signed=signed),)


def _floored(node: ScoringNode, wanted: Sequence[Sequence[float]]) -> ScoringNode:
    """The node, with the floor that the best scores of what is wanted give."""
    if isinstance(node, Damped) and wanted and len(wanted[0]) >= _FLOOR:
        return replace(node, floor=max(0.0, wanted[0][_FLOOR - 1]))
    return node


def _in_context(node: Damped, weight: float) -> ScoringNode:
    """The child, with the context if there is one."""
    if not node.context:
        return node.child
    return summed(*summands(node.child), Linear(scale(node.context, weight), kept=()))


def _with_closed(node: ScoringNode, closed: Iterator[ScoringNode], union: Operator) -> ScoringNode:
    """The tree, in which each node that is ready is replaced by the next of ``closed``; see :func:`_ready`."""
    if _is_ready(node):
        return next(closed)
    children = [_with_closed(child, closed, union) for child in node.children]
    pairs = list(zip(node.children, children, strict=True))
    if isinstance(node, (Max, Sum)) and any(type(old) is not type(new) for old, new in pairs):
        return united(union, children)  # a NOT fell away, and only unions have NOT in their children
    return node if all(new is old for old, new in pairs) else node.with_children(children)


def _no_index(node: ScoringNode) -> QueryError:
    if isinstance(node, Damped):
        remedy = "name one (--index), or choose another --difference, such as disentangled"
        return QueryError("damped needs an index, for the best score of the excluded part", remedy=remedy)
    return QueryError("NOT! by scores needs an index", remedy="name one (--index), or --exclusion words or any")
