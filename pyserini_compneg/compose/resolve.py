"""Closes open scoring trees with scores of an index: the only stage of a query that asks the index before the search.

Composition leaves open what only an index knows: the best scores of what NOT excludes, whether that is a class of
documents, the floor of damping, and the limits of NOT! by scores. The open nodes of all queries are closed together,
the inner ones first: one batch of searches for each level of nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyserini_compneg.compose.adapting import adapted
from pyserini_compneg.compose.composer import united
from pyserini_compneg.compose.quantisation import quantised
from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, ScoringNode, Sum
from pyserini_compneg.compose.trees import is_open, nodes, summands, summed
from pyserini_compneg.expression import Filter
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import scale

TopScores: TypeAlias = Callable[[Sequence[ScoringNode], int], Sequence[Sequence[float]]]
"""Maps queries and k to the k best scores of each query in an index, best first."""

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
"""The weight of all parts of a text, including excluded parts, beside the query read from it, which has the weight 1.
The smaller weight applies if a class is excluded: the larger weight would find its documents."""


def resolved(
    trees: Sequence[ScoringNode], union: str, top_scores: TopScores | None, weight_scale: float, signed: bool = False
) -> list[ScoringNode]:
    """The trees, which are not yet rounded, without open nodes. If a tree is open, there must be an index.

    The index is asked with rounded weights, as a search asks it. A union whose alternatives have become vectors is
    composed again, by its operator ``union``. ``signed``: the index keeps negative weights of documents.
    """
    trees = list(trees)
    while ready := [one for tree in trees for one in _ready(tree, signed)]:
        if top_scores is None:
            raise _no_index(ready[0][0])
        queries = [query for one in ready for query in _queries(*one)]
        answers = iter(top_scores([quantised(query, weight_scale) for query in queries], _PAGE))
        scores = [[[score / weight_scale for score in next(answers)] for _ in _queries(*one)] for one in ready]
        closed = iter([_closed(node, found) for (node, _), found in zip(ready, scores, strict=True)])
        trees = [_with_closed(tree, closed, union) for tree in trees]
    return trees


def _is_ready(node: ScoringNode) -> bool:
    return is_open(node) and not any(is_open(below) for child in node.children for below in nodes(child))


def _ready(node: ScoringNode, signed: bool) -> Iterator[tuple[ScoringNode, bool]]:
    """Yields the open nodes above closed ones, and whether negative weights of documents count in their children."""
    if _is_ready(node):
        yield node, signed
        return
    for number, child in enumerate(node.children):
        yield from _ready(child, signed and number < len(node.wanted))


def _queries(node: ScoringNode, signed: bool) -> list[ScoringNode]:
    """The queries whose best scores close a node."""
    if isinstance(node, Damped):
        return [*node.excluded, adapted(_in_context(node, _CONTEXT), signed=signed)]
    return list(node.scored) if isinstance(node, Excluding) else []


def _closed(node: ScoringNode, scores: Sequence[Sequence[float]]) -> ScoringNode:
    if isinstance(node, Excluding):
        best = iter(max((0.0, *found)) for found in scores)
        limits = (0.0 if isinstance(part, Filter) else node.share * next(best) for part in node.excluded)
        return replace(node, above=tuple(limits), share=0.0)
    assert isinstance(node, Damped)
    return _damped(node, scores[:-1], scores[-1])


def _damped(node: Damped, bests: Sequence[Sequence[float]], wanted: Sequence[float]) -> ScoringNode:
    """A, lowered by the excluded parts that the index has; A itself if it has none of them.

    Unless a class is excluded, the best documents of A keep about the score of the fourth document. If A was read from
    a text, all parts of the text are added with a small weight, as context.
    """
    found = [(part, best) for part, best in zip(node.excluded, bests, strict=True) if best and best[0] > 0]
    if not found:
        return node.child
    is_class = any(len(best) == _PAGE and best[-1] >= _BROAD * best[0] for _, best in found)
    has_floor = not is_class and len(wanted) >= _FLOOR
    return Damped(
        _in_context(node, _BROAD_CONTEXT if is_class else _CONTEXT),
        tuple(part for part, _ in found),
        tuple(best[0] for _, best in found),
        node.weight,
        max(0.0, wanted[_FLOOR - 1]) if has_floor else 0.0,
    )


def _in_context(node: Damped, weight: float) -> ScoringNode:
    """The child, with the context if there is one."""
    if not node.context:
        return node.child
    return summed(*summands(node.child), Linear(scale(node.context, weight), kept=()))


def _with_closed(node: ScoringNode, closed: Iterator[ScoringNode], union: str) -> ScoringNode:
    """The tree with closed nodes for those of :func:`_ready`, in their order."""
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
