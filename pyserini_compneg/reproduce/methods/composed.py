"""Composition by a choice of operators: what the searcher itself does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pyserini_compneg.compose import Operators, ScoringNode
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.reproduce.methods.method import Context
from pyserini_compneg.search import Hit

SETTINGS = tuple(field.name for field in fields(Operators))


class Composed:
    """The searcher with a choice of operators.

    Args:
        context: The searcher.
        settings: Fields of :class:`Operators`; the others keep their defaults.

    Raises:
        ProtocolError: An unknown setting.
        CompositionError: A value out of range.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        unknown = sorted(settings.keys() - set(SETTINGS))
        if unknown:
            raise ProtocolError(
                f"method operators: unknown setting {unknown[0]!r}; expected one of {', '.join(SETTINGS)}"
            )
        self._context = context
        self._operators = replace(Operators(), **settings)

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches."""
        searcher, threads = self._context
        searcher.operators = self._operators
        return searcher.batch_search([topic_query(topic) for topic in topics], [t.qid for t in topics], k, threads)

    def compose(self, topic: Topic) -> ScoringNode:
        """The composed query."""
        self._context.searcher.operators = self._operators
        return self._context.searcher.compose([topic_query(topic)])[0]
