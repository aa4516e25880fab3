"""The methods that protocols compare, by name: operators, and the baselines that are no operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pyserini_compneg.compose import Linear, Operators, ScoringNode, quantised
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.compose.composer import atom_vectors
from pyserini_compneg.compose.filtering import filtered, negated_terms, wanted_and_negated
from pyserini_compneg.compose.fusion import fused
from pyserini_compneg.compose.intersection import CPT_TERMS
from pyserini_compneg.errors import CompositionError, ProtocolError
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.guard import search_guarded

DENSE = "dense"
"""The method that has an encoder of its own, ``DenseMethod`` of ``experiments.dense``."""

_OPERATORS = tuple(field.name for field in fields(Operators))
_SUBSET = 1000


class Context(NamedTuple):
    """What methods are made with.

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
        check_settings("operators", settings, _OPERATORS)
        self._context = context
        self._operators = Operators(**settings)

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches."""
        nodes = self._context.searcher.compose([topic_query(topic) for topic in topics], self._operators)
        return self._context.search(topics, nodes, k)

    def compose(self, topic: Topic) -> ScoringNode:
        """The composed query."""
        return self._context.searcher.compose([topic_query(topic)], self._operators)[0]


class Guarded(Composed):
    """The composed query with the guard for exclusions, see :mod:`pyserini_compneg.search.guard`."""

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Composes and searches. The best documents without the exclusion stay in the top 10."""
        return search_guarded(self._context.searcher, topics, k, self._context.threads, self._operators)


class ScoreFusion:
    """Ranks by the exact scores of the atoms, fused.

    Its queries hold factors between units, so reports do not show them as weights of terms.

    Args:
        context: The searcher.
        settings: There are none.
        scaled: Whether each score is divided by the best one of its atom.

    Raises:
        ProtocolError: A setting, or an index of signed documents.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any], scaled: bool = False) -> None:
        name = "score-fusion-scaled" if scaled else "score-fusion"
        check_settings(name, settings, ())
        _check_unsigned(name, context.searcher)
        self._context, self._scaled = context, scaled

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Fuses and searches."""
        searcher = self._context.searcher
        expressions = [_expression(topic) for topic in topics]
        texts = list(dict.fromkeys(text for expression in expressions for text in atoms(expression)))
        vectors = atom_vectors(texts, searcher.encoder)
        scores = None
        if self._scaled:
            queries = [quantised(Linear(vectors[text]), searcher.weight_scale) for text in texts]
            scores = dict(zip(texts, searcher.best_scores(queries, self._context.threads), strict=True))
        manifest = searcher.reader.manifest
        impact_scale = manifest.impact_scale if manifest else None
        nodes = []
        for topic, expression in zip(topics, expressions, strict=True):
            with _naming(topic):
                nodes.append(fused(expression, vectors, impact_scale, scores, searcher.weight_scale))
        return self._context.search(topics, nodes, k)


class Filtering:
    """Ranks by what is wanted, without the documents that hold a negated term.

    The weights that drop these documents say nothing about the terms, so reports do not show them.

    Args:
        context: The searcher.
        settings: ``top_terms``, how many terms of each negated atom leave documents out, 5 if it is not given;
            ``union`` and ``intersection``, the operators of what is wanted.

    Raises:
        ProtocolError: An unknown setting, a wrong number, or an index of signed documents.
        CompositionError: An unknown operator.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings("filtering", settings, ("top_terms", "union", "intersection"))
        _check_unsigned("filtering", context.searcher)
        self._context = context
        self._top_terms = _whole_number("filtering", "top_terms", settings.get("top_terms", CPT_TERMS))
        self._operators = Operators(**{name: value for name, value in settings.items() if name != "top_terms"})

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Ranks and filters."""
        rankings = self._context.search(topics, self._filtered(topics), k)
        return {qid: [hit for hit in hits if hit.score > 0] for qid, hits in rankings.items()}

    def _filtered(self, topics: Sequence[Topic]) -> list[ScoringNode]:
        searcher = self._context.searcher
        sides = []
        for topic in topics:
            with _naming(topic):
                sides.append(wanted_and_negated(_expression(topic)))
        texts = dict.fromkeys(text for wanted, negated in sides for text in (*atoms(wanted), *negated))
        vectors = atom_vectors(list(texts), searcher.encoder)
        queries = searcher.compose([wanted for wanted, _ in sides], self._operators)
        best_scores = searcher.best_scores(queries, self._context.threads)
        nodes = []
        for topic, (wanted, negated), query, best in zip(topics, sides, queries, best_scores, strict=True):
            terms = negated_terms(
                map(vectors.__getitem__, atoms(wanted)), map(vectors.__getitem__, negated), self._top_terms
            )
            with _naming(topic):
                nodes.append(filtered(query, terms, best))
        return nodes


class TwoStep:
    """Searches with a plain query, then ranks its first documents again by the exact scores of conjunctions.

    The plain query has ``maxpool`` for ∩. Documents that the conjunction does not match drop out, as they do where it
    is searched for in one step.

    Args:
        context: The searcher.
        settings: ``subset``, how many documents are ranked again, 1,000 if it is not given; and fields of
            :class:`Operators`, with ``intersection`` as ``cpt`` if it is not given.

    Raises:
        ProtocolError: An unknown setting, or a wrong number.
        CompositionError: An operator's setting out of range.

    Source: Krasakis, Yates, Kanoulas, Section 3.2.2, below Eq. 8.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings("two-step", settings, ("subset", *_OPERATORS))
        self._context = context
        self._subset = _whole_number("two-step", "subset", settings.get("subset", _SUBSET))
        operators = {name: value for name, value in settings.items() if name != "subset"}
        self._exact = Operators(**{"intersection": "cpt", **operators})
        self._plain = replace(self._exact, intersection="maxpool")

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Searches, and ranks the first documents again."""
        searcher = self._context.searcher
        expressions = [_expression(topic) for topic in topics]
        first = self._context.search(topics, searcher.compose(expressions, self._plain), self._subset)
        docids = [[hit.docid for hit in first[topic.qid]] for topic in topics]
        scores = searcher.batch_score(searcher.compose(expressions, self._exact), docids, self._context.threads)
        rankings = {}
        for topic, listed, values in zip(topics, docids, scores, strict=True):
            hits = [Hit(docid, score) for docid, score in zip(listed, values, strict=True) if score is not None]
            rankings[topic.qid] = sorted(hits, key=lambda hit: (-hit.score, hit.docid))[:k]
        return rankings

    def compose(self, topic: Topic) -> ScoringNode:
        """The composed query of the second step."""
        return self._context.searcher.compose([_expression(topic)], self._exact)[0]


METHODS: Mapping[str, Callable[[Context, Mapping[str, Any]], Method]] = {
    "operators": Composed,
    "guarded": Guarded,
    "score-fusion": ScoreFusion,
    "score-fusion-scaled": partial(ScoreFusion, scaled=True),
    "filtering": Filtering,
    "two-step": TwoStep,
}


def make_method(name: str, settings: Mapping[str, Any], context: Context) -> Method:
    """Makes a method.

    Args:
        name: One of ``METHODS``.
        settings: The method's settings.
        context: What it works with.

    Raises:
        ProtocolError: No such method, or a setting that it does not have.
    """
    if name not in METHODS:
        raise ProtocolError(f"no method {name!r}; expected one of {', '.join((*METHODS, DENSE))}")
    return METHODS[name](context, settings)


def check_settings(method: str, settings: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses settings that a method does not have.

    Raises:
        ProtocolError: There is one.
    """
    if unknown := sorted(settings.keys() - set(known)):
        expected = f"expected one of {', '.join(known)}" if known else "it has none"
        raise ProtocolError(f"method {method}: unknown setting {unknown[0]!r}; {expected}")


def _whole_number(method: str, setting: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ProtocolError(f"method {method}: {setting} must be a whole number from 1, got {value!r}")
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


def _check_unsigned(method: str, searcher: SignedImpactSearcher) -> None:
    """Refuses an index of signed documents, where no score has 0 as its lower end."""
    if searcher.reader.manifest is not None and searcher.reader.manifest.signed:
        raise ProtocolError(f"method {method}: {searcher.reader.folder} holds negative weights of documents")
