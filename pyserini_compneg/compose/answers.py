"""Best scores that compositions need from the index. They are looked up in rounds, one search for all queries.

A composition that lacks a score stops. When all compositions have finished or stopped, one search looks up the missing
scores, and the stopped compositions start again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from pyserini_compneg.compose.json_form import query_line
from pyserini_compneg.compose.scoring import ScoringNode

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

TopScores: TypeAlias = Callable[[Sequence[ScoringNode], int], Sequence[Sequence[float]]]
"""Maps queries and k to the k best scores of each query in an index, best first."""

FIRST_PAGE = 10
"""How many best scores are looked up for a query."""


class _Unanswered(Exception):  # noqa: N818  # not an error: the composition is resumed with the answer
    """The composition needs scores that the next round looks up in the index."""


class Answers:
    """The scores that the index has returned, and the queries of the next round."""

    def __init__(self, top_scores: TopScores) -> None:
        self._top_scores = top_scores
        self._known: dict[str, Sequence[float]] = {}
        self._asked: dict[str, ScoringNode] = {}

    def best(self, nodes: Sequence[ScoringNode]) -> list[Sequence[float]]:
        """The scores of the first page of each query, best first."""
        keys = [query_line(node) for node in nodes]
        if missing := {key: node for key, node in zip(keys, nodes, strict=True) if key not in self._known}:
            self._asked |= missing
            raise _Unanswered
        return [self._known[key] for key in keys]

    def ask(self) -> None:
        asked, self._asked = self._asked, {}
        if asked:
            self._known |= zip(asked, self._top_scores(list(asked.values()), FIRST_PAGE), strict=True)


def for_each(compose: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """The result for each part. If one part needs a score, the other parts still register the scores that they need."""
    results = []
    for part in parts:
        with suppress(_Unanswered):
            results.append(compose(part))
    if len(results) < len(parts):
        raise _Unanswered
    return results


def answered(compositions: Sequence[Callable[[], _Result]], answers: Answers | None) -> list[_Result]:
    results: dict[int, _Result] = {}
    while len(results) < len(compositions):
        for i, compose in enumerate(compositions):
            if i not in results:
                with suppress(_Unanswered):
                    results[i] = compose()
        if answers:
            answers.ask()
    return [results[i] for i in range(len(compositions))]
