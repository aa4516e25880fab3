"""The two-step approximation of Combined Pseudo-Terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyserini_compneg.compose import Operators, ScoringNode
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.reproduce.methods.composed import SETTINGS as OPERATORS
from pyserini_compneg.reproduce.methods.method import (
    Context,
    check_settings,
    search_composed,
    topic_expression,
    whole_number,
)
from pyserini_compneg.search import Hit

SUBSET = 1000
SETTINGS = ("subset", *OPERATORS)


class TwoStep:
    """Ranks the first documents of a plain query anew, with conjunctions scored exactly.

    The plain query has ``maxpool`` for ∩. Documents that the conjunction does not match drop out, as they do where it
    is searched for in one step.

    Args:
        context: The searcher.
        settings: ``subset``, how many documents are ranked anew, 1,000 if it is not given; and fields of
            :class:`Operators`, with ``intersection`` as ``cpt`` if it is not given.

    Raises:
        ProtocolError: An unknown setting, or a wrong number.
        CompositionError: An operator's setting out of range.

    Source: Krasakis, Yates, Kanoulas, Section 3.2.2, below Eq. 8.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings("two-step", settings, SETTINGS)
        self._context = context
        self._subset = whole_number("two-step", "subset", settings.get("subset", SUBSET))
        operators = {name: value for name, value in settings.items() if name != "subset"}
        self._exact = Operators(**{"intersection": "cpt", **operators})
        self._plain = replace(self._exact, intersection="maxpool")

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Searches, and ranks anew."""
        searcher, threads = self._context.searcher, self._context.threads
        expressions = [topic_expression(topic) for topic in topics]
        first = search_composed(self._context, topics, searcher.compose(expressions, self._plain), self._subset)
        docids = [[hit.docid for hit in first[topic.qid]] for topic in topics]
        scores = searcher.batch_score(searcher.compose(expressions, self._exact), docids, threads)
        return {
            topic.qid: _ranked(listed, values, k) for topic, listed, values in zip(topics, docids, scores, strict=True)
        }

    def compose(self, topic: Topic) -> ScoringNode:
        """The composed query of the second step."""
        return self._context.searcher.compose([topic_expression(topic)], self._exact)[0]


def _ranked(docids: Sequence[str], scores: Sequence[float | None], k: int) -> list[Hit]:
    matched = [Hit(docid, score) for docid, score in zip(docids, scores, strict=True) if score is not None]
    return sorted(matched, key=lambda hit: (-hit.score, hit.docid))[:k]
