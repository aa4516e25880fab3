"""The methods that protocols compare, by name: operators, and the baselines that are no operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pyserini_compneg.compose import Linear, Operators, ScoringNode, quantised
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.compose.composer import atom_vectors
from pyserini_compneg.compose.fusion import fused
from pyserini_compneg.compose.rewrite import check_exclusions, hardened
from pyserini_compneg.errors import CompositionError, ProtocolError
from pyserini_compneg.experiments.dense import DENSE_OPERATORS, DenseMethod
from pyserini_compneg.experiments.word_space import WordSpaceMethod
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.terminal import shown

DENSE, WORD_SPACE = "dense", "word-space"

_OPERATORS = tuple(field.name for field in fields(Operators))
_SUBSET = 1000


class Context(NamedTuple):
    """What sparse methods work with.

    Attributes:
        searcher: The index of the documents, open, with the encoder of the queries.
        threads: Queries searched at once.
    """

    searcher: SignedImpactSearcher
    threads: int = 1

    def search(self, topics: Sequence[Topic], nodes: Sequence[ScoringNode], k: int) -> dict[str, list[Hit]]:
        """The first k documents of each topic's composed query."""
        return self.searcher.batch_search(nodes, [topic.qid for topic in topics], k, self.threads)


class Method(Protocol):
    """Answers topics on an index of sparse vectors."""

    def search(self, context: Context, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """The first k documents for each topic, by its id."""
        ...


@runtime_checkable
class ComposingMethod(Method, Protocol):
    """A method whose queries are weights of terms, which can be shown."""

    def compose(self, context: Context, topic: Topic) -> ScoringNode:
        """The query that is run for a topic."""
        ...


class Composed:
    """The searcher with a choice of operators.

    Args:
        operators: Fields of :class:`Operators`; the others keep their defaults.

    Raises:
        CompositionError: A value out of range.
    """

    def __init__(self, **operators: Any) -> None:
        self._operators = Operators(**operators)

    def search(self, context: Context, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches."""
        nodes = context.searcher.compose([topic_query(topic) for topic in topics], self._operators)
        return context.search(topics, nodes, k)

    def compose(self, context: Context, topic: Topic) -> ScoringNode:
        """The composed query."""
        return context.searcher.compose([topic_query(topic)], self._operators)[0]


class ScoreFusion:
    """Ranks by the exact scores of the atoms, fused. Its queries hold factors between units, so they are not shown.

    Args:
        scaled: Whether each score is divided by the best one of its atom.
    """

    def __init__(self, scaled: bool = False) -> None:
        self._scaled = scaled

    def search(self, context: Context, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Fuses and searches.

        Raises:
            ProtocolError: An index of signed documents, or a composed query.
            CompositionError: A query that cannot be fused.
        """
        _check_unsigned("score fusion", context)
        searcher = context.searcher
        expressions = [_expression(topic) for topic in topics]
        texts = list(dict.fromkeys(text for expression in expressions for text in atoms(expression)))
        vectors = atom_vectors(texts, searcher.encoder)
        scores = None
        if self._scaled:
            queries = [quantised(Linear(vectors[text]), searcher.weight_scale) for text in texts]
            scores = dict(zip(texts, searcher.best_scores(queries, context.threads), strict=True))
        manifest = searcher.reader.manifest
        impact_scale = manifest.impact_scale if manifest else None
        nodes = []
        for topic, expression in zip(topics, expressions, strict=True):
            with _naming(topic):
                nodes.append(fused(expression, vectors, impact_scale, scores, searcher.weight_scale))
        return context.search(topics, nodes, k)


class Filtering:
    """Ranks by what is wanted, without the documents that hold a negated term: every NOT is a NOT!.

    Args:
        operators: Fields of :class:`Operators`: ``union`` and ``intersection`` of what is wanted, and how many terms of
            each negated atom leave documents out, ``cpt_terms``.

    Raises:
        CompositionError: An unknown operator, or a value out of its range.

    Source: Widdows 2003, Sections 3.1 and 4.1, where each negated term is a word of its own.
    """

    def __init__(self, **operators: Any) -> None:
        self._operators = Operators(**operators, exclusion="any")

    def search(self, context: Context, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Ranks and filters.

        Raises:
            ProtocolError: A composed query.
            CompositionError: A query in which NOT! cannot stand for a NOT.
        """
        for topic in topics:
            with _naming(topic):
                check_exclusions(hardened(_expression(topic)))
        nodes = context.searcher.compose([hardened(_expression(topic)) for topic in topics], self._operators)
        return context.search(topics, nodes, k)


class TwoStep:
    """Searches with a plain query, then ranks its first documents again by the exact scores of conjunctions.

    The plain query has ``maxpool`` for ∩. Documents that the conjunction does not match drop out, as they do where it
    is searched for in one step.

    Args:
        subset: How many documents are ranked again.
        operators: Fields of :class:`Operators`, with ``intersection`` as ``cpt`` if it is not given.

    Raises:
        ProtocolError: A wrong number.
        CompositionError: An operator's setting out of range.

    Source: Krasakis, Yates, Kanoulas, Section 3.2.2, below Eq. 8.
    """

    def __init__(self, subset: int = _SUBSET, **operators: Any) -> None:
        self._subset = _whole_number("subset", subset)
        self._exact = Operators(**{"intersection": "cpt", **operators})
        self._plain = replace(self._exact, intersection="maxpool")

    def search(self, context: Context, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Searches, and ranks the first documents again.

        Raises:
            ProtocolError: A composed query.
        """
        searcher = context.searcher
        expressions = [_expression(topic) for topic in topics]
        first = context.search(topics, searcher.compose(expressions, self._plain), self._subset)
        docids = [[hit.docid for hit in first[topic.qid]] for topic in topics]
        scores = searcher.batch_score(searcher.compose(expressions, self._exact), docids, context.threads)
        rankings = {}
        for topic, listed, values in zip(topics, docids, scores, strict=True):
            hits = [Hit(docid, score) for docid, score in zip(listed, values, strict=True) if score is not None]
            rankings[topic.qid] = sorted(hits, key=lambda hit: (-hit.score, hit.docid))[:k]
        return rankings

    def compose(self, context: Context, topic: Topic) -> ScoringNode:
        """The composed query of the second step."""
        return context.searcher.compose([_expression(topic)], self._exact)[0]


METHODS: Mapping[str, tuple[Callable[..., Method | DenseMethod | WordSpaceMethod], tuple[str, ...]]] = {
    "operators": (Composed, _OPERATORS),
    "score-fusion": (ScoreFusion, ()),
    "score-fusion-scaled": (partial(ScoreFusion, scaled=True), ()),
    "filtering": (Filtering, ("union", "intersection", "cpt_terms")),
    "two-step": (TwoStep, ("subset", *_OPERATORS)),
    DENSE: (DenseMethod, tuple(DENSE_OPERATORS)),
    WORD_SPACE: (WordSpaceMethod, ("difference",)),
}
"""What makes each method, and the names of its settings."""


def make_method(name: str, settings: Mapping[str, Any]) -> Method | DenseMethod | WordSpaceMethod:
    """Makes a method.

    Args:
        name: One of ``METHODS``.
        settings: The method's settings.

    Raises:
        ProtocolError: No such method, a setting that it does not have, or a wrong number.
        CompositionError: An unknown operator, or an operator's setting out of range.
    """
    if name not in METHODS:
        raise ProtocolError(f"no method {shown(name)}; expected one of {', '.join(METHODS)}")
    make, known = METHODS[name]
    if unknown := sorted(settings.keys() - set(known)):
        expected = f"expected one of {', '.join(known)}" if known else "it has none"
        raise ProtocolError(f"method {name}: unknown setting {shown(unknown[0])}; {expected}")
    return make(**settings)


def _whole_number(setting: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ProtocolError(f"{setting} must be a whole number from 1, got {shown(value)}")
    return value


def _expression(topic: Topic) -> Expression:
    if topic.expression is None:
        raise ProtocolError(f"query {topic.qid} is composed already; only the method operators runs it")
    return topic.expression


@contextmanager
def _naming(topic: Topic) -> Iterator[None]:
    """Names the query in errors of composition."""
    try:
        yield
    except CompositionError as error:
        raise CompositionError(f"query {topic.qid}: {error}") from None


def _check_unsigned(method: str, context: Context) -> None:
    """Refuses an index of signed documents, where no score has 0 as its lower end."""
    reader = context.searcher.reader
    if reader.manifest is not None and reader.manifest.signed:
        raise ProtocolError(f"{reader.folder} holds negative weights of documents, for which {method} is not defined")
