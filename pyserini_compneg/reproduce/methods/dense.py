"""Rankings by a dense encoder, composed by the algebra of its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_compneg.compose.dense import DENSE_OPERATORS, DenseOperators, dense_queries
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.reproduce.methods.method import DenseContext, check_settings
from pyserini_compneg.search import Hit


class Dense:
    """Ranks all documents by their similarity to composed dense vectors.

    Args:
        context: The dense encoder and its index.
        settings: Fields of :class:`DenseOperators`; the others keep their defaults.

    Raises:
        ProtocolError: An unknown setting.
        CompositionError: An unknown operator.
    """

    def __init__(self, context: DenseContext, settings: Mapping[str, Any]) -> None:
        check_settings("dense", settings, DENSE_OPERATORS)
        self._context = context
        self._operators = DenseOperators(**settings)

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches; scores are from 0 to 1.

        Raises:
            ProtocolError: A composed query.
            EncodingError: A text that cannot be encoded.
        """
        expressions = []
        for topic in topics:
            if topic.expression is None:
                raise ProtocolError(f"query {topic.qid} is composed of terms already, which dense vectors have not")
            expressions.append(topic.expression)
        encoder, reader = self._context.engine()
        queries = dense_queries(expressions, encoder, self._operators)
        rankings = reader.search(queries, k, self._context.threads)
        return {
            topic.qid: list(map(Hit, ranking.docids, ranking.scores))
            for topic, ranking in zip(topics, rankings, strict=True)
        }
