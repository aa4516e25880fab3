"""Post-retrieval filtering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_compneg.compose import Operators, ScoringNode
from pyserini_compneg.compose.composer import atom_vectors
from pyserini_compneg.compose.filtering import filtered, negated_terms, wanted_and_negated
from pyserini_compneg.compose.intersection import TOP_TERMS
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import atoms
from pyserini_compneg.reproduce.methods.method import (
    Context,
    check_settings,
    check_unsigned,
    naming,
    search_composed,
    topic_expression,
    whole_number,
)
from pyserini_compneg.search import Hit

SETTINGS = ("top_terms", "union", "intersection")


class Filtering:
    """Ranks by what is wanted, without the documents that hold a negated term.

    The weights that drop these say nothing of the terms, so its queries are not shown as weights.

    Args:
        context: The searcher.
        settings: ``top_terms``, how many terms of each negated atom leave documents out, 5 if it is not given;
            ``union`` and ``intersection``, the operators of what is wanted.

    Raises:
        ProtocolError: An unknown setting, a wrong number, or an index of signed documents.
        CompositionError: An unknown operator.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings("filtering", settings, SETTINGS)
        check_unsigned("filtering", context.searcher)
        self._context = context
        self._top = whole_number("filtering", "top_terms", settings.get("top_terms", TOP_TERMS))
        self._operators = Operators(**{name: value for name, value in settings.items() if name != "top_terms"})

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Ranks and filters."""
        rankings = search_composed(self._context, topics, self._filter(topics), k)
        return {qid: [hit for hit in hits if hit.score > 0] for qid, hits in rankings.items()}

    def _filter(self, topics: Sequence[Topic]) -> list[ScoringNode]:
        searcher = self._context.searcher
        parts = []
        for topic in topics:
            with naming(topic):
                parts.append(wanted_and_negated(topic_expression(topic)))
        texts = dict.fromkeys(text for wanted, negated in parts for text in (*atoms(wanted), *negated))
        vectors = atom_vectors(list(texts), searcher.encoder)
        queries = searcher.compose([wanted for wanted, _ in parts], self._operators)
        nodes = []
        for topic, (wanted, negated), query, best in zip(
            topics, parts, queries, self._context.searcher.best_scores(queries, self._context.threads), strict=True
        ):
            terms = negated_terms(map(vectors.__getitem__, atoms(wanted)), map(vectors.__getitem__, negated), self._top)
            with naming(topic):
                nodes.append(filtered(query, terms, best))
        return nodes
