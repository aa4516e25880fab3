"""Rankings by a dense encoder, composed by the algebra of its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyserini_compneg.compose.dense import DENSE_OPERATORS, DenseOperators, DenseQueryEncoder, dense_queries
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.lucene.dense import DenseReader
from pyserini_compneg.search.run_writer import Hit

_BATCH = 256


@dataclass(frozen=True, slots=True)
class DenseContext:
    """What dense methods work with.

    Attributes:
        reader: The open index of the documents.
        encoder: Its model.
        threads: Queries searched at once.
    """

    reader: DenseReader
    encoder: DenseQueryEncoder
    threads: int = 1


class DenseMethod:
    """Answers topics with a choice of operators.

    Args:
        context: Index and encoder.
        operators: What stands for union, intersection and difference.
    """

    def __init__(self, context: DenseContext, operators: DenseOperators | None = None) -> None:
        self._context = context
        self._operators = operators or DenseOperators()

    @classmethod
    def from_settings(cls, context: DenseContext, settings: Mapping[str, str]) -> DenseMethod:
        """The method of a protocol's settings, by the names of the operators; those left out have their defaults.

        Raises:
            CompositionError: An unknown setting or operator.
        """
        if unknown := [name for name in settings if name not in DENSE_OPERATORS]:
            raise CompositionError(f"dense: no setting {unknown[0]!r}; there are: {', '.join(DENSE_OPERATORS)}")
        return cls(context, DenseOperators(**settings))

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """The ranking of each topic: scores from 0 to 1, falling, equal ones by ascending docid.

        Args:
            topics: What is searched for.
            k: The most documents of a ranking.

        Raises:
            CompositionError: A topic without an expression.
            EncodingError: A text that cannot be encoded.
        """
        expressions = []
        for topic in topics:
            if topic.expression is None:
                raise CompositionError(f"query {topic.qid!r}: composed of terms already; dense needs its expression")
            expressions.append(topic.expression)
        queries = dense_queries(expressions, self._context.encoder, self._operators)
        found: dict[str, list[Hit]] = {}
        for start in range(0, len(topics), _BATCH):
            rankings = self._context.reader.search(queries[start : start + _BATCH], k, self._context.threads)
            for topic, ranking in zip(topics[start : start + _BATCH], rankings, strict=True):
                found[topic.qid] = list(map(Hit, ranking.docids, ranking.scores))
        return found
