"""What a method is: something that answers topics with rankings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import CompositionError, ProtocolError
from pyserini_compneg.expression import Expression
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


def check_settings(method: str, settings: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses settings that a method does not have.

    Raises:
        ProtocolError: There is one.
    """
    if unknown := sorted(settings.keys() - set(known)):
        expected = f"expected one of {', '.join(known)}" if known else "it has none"
        raise ProtocolError(f"method {method}: unknown setting {unknown[0]!r}; {expected}")


def whole_number(method: str, setting: str, value: object) -> int:
    """A setting that is a whole number from 1.

    Raises:
        ProtocolError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ProtocolError(f"method {method}: {setting} must be a whole number from 1, got {value!r}")
    return value


def topic_expression(topic: Topic) -> Expression:
    """The expression of a topic, for methods that need its atoms.

    Raises:
        ProtocolError: The topic is a composed query.
    """
    if topic.expression is None:
        raise ProtocolError(f"query {topic.qid} is composed already; only the method operators runs it")
    return topic.expression


@contextmanager
def naming(topic: Topic) -> Iterator[None]:
    """Lets errors of composition say which query they are about."""
    try:
        yield
    except CompositionError as error:
        raise CompositionError(f"query {topic.qid}: {error}") from None


def check_unsigned(method: str, searcher: SignedImpactSearcher) -> None:
    """Refuses an index of signed documents, where no score has 0 as its lower end.

    Raises:
        ProtocolError: It is one.
    """
    if searcher.reader.manifest is not None and searcher.reader.manifest.signed:
        raise ProtocolError(f"method {method}: {searcher.reader.folder} holds negative weights of documents")


def search_composed(
    context: Context, topics: Sequence[Topic], nodes: Sequence[ScoringNode], k: int
) -> dict[str, list[Hit]]:
    """The first k documents of each topic's composed query."""
    return context.searcher.batch_search(nodes, [topic.qid for topic in topics], k, context.threads)
