"""What a method is: something that answers topics with rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.search import Hit, SignedImpactSearcher


class Context(NamedTuple):
    """What methods are made with.

    Attributes:
        searcher: The index of the documents, open, with the encoder of the queries.
        threads: Queries searched at once.
    """

    searcher: SignedImpactSearcher
    threads: int = 1


class Method(Protocol):
    """Answers topics."""

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """The first k documents for each topic, by its id."""
        ...


@runtime_checkable
class ComposingMethod(Method, Protocol):
    """A method whose queries are weights of terms, which can be shown."""

    def compose(self, topic: Topic) -> ScoringNode:
        """The query that is run for a topic."""
        ...
