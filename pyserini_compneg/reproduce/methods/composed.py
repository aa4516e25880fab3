"""Composition by a choice of operators: what the searcher itself does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from pyserini_compneg.compose import Operators, ScoringNode
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.reproduce.methods.method import Context, check_settings, search_composed
from pyserini_compneg.search import Hit
from pyserini_compneg.search.guard import search_guarded

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
        check_settings("operators", settings, SETTINGS)
        self._context = context
        self._operators = Operators(**settings)

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches."""
        nodes = self._context.searcher.compose([topic_query(topic) for topic in topics], self._operators)
        return search_composed(self._context, topics, nodes, k)

    def compose(self, topic: Topic) -> ScoringNode:
        """The composed query."""
        return self._context.searcher.compose([topic_query(topic)], self._operators)[0]


class Guarded(Composed):
    """The same with the guard for queries that exclude something, see :mod:`pyserini_compneg.search.guard`."""

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches, and keeps on the first page what stands there without the exclusion."""
        return search_guarded(self._context.searcher, topics, k, self._context.threads, self._operators)
