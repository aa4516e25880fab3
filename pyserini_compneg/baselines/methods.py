"""Methods: how a searcher answers queries. Operators are one way, the others are the papers' baselines.

A searcher takes a method as ``method``. The command line takes its name as ``--method``, and rows of protocols name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pyserini_compneg.baselines.feedback import BETA, GAMMA, TERMS, Rocchio
from pyserini_compneg.baselines.fusion import ScoreFusion
from pyserini_compneg.compose import Operators, Query, ScoringNode
from pyserini_compneg.compose.rewrite import differences_as_exclusions
from pyserini_compneg.search.ranked_hits import as_expressions, ranked, warn_of_no_result
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:  # eval loads numpy
    from pyserini_compneg.eval import Qrels

_OPERATORS = tuple(field.name for field in fields(Operators))

DEPTH = 1000
"""How many documents the first step of a two-step method finds."""


@dataclass(frozen=True, slots=True)
class ComposingMethod:
    """Ranks by one scoring tree for each query, made by a choice of operators, so that scores can be explained."""

    operators: Operators

    def compose(self, searcher: SignedImpactSearcher, queries: Sequence[Query]) -> list[ScoringNode]:
        """The scoring tree of each query. Its scores are the scores of the ranking."""
        return searcher.compose(queries, self.operators)

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        """The hits of the composed queries; see :meth:`Method.answer`."""
        nodes = self.compose(searcher, request.queries)
        return searcher.batch_search(
            nodes,
            request.qids,
            request.k,
            request.threads,
            filter=request.filters,
            remove_query=request.remove_query,
        )


@dataclass(frozen=True, slots=True)
class Filtering(ComposingMethod):
    """Ranks by the wanted part and removes documents that contain a negated term: every NOT acts as NOT!.

    Attributes:
        operators: ``union`` and ``intersection``, with their settings, apply to the wanted part. ``cpt_terms`` is the
            number of heaviest terms of each negated atom that remove documents. ``exclusion`` must be ``any``.

    Source: Widdows 2003, Sections 3.1 and 4.1, where each negated term is a separate word.
    """

    operators: Operators = Operators(exclusion="any")

    def compose(self, searcher: SignedImpactSearcher, queries: Sequence[Query]) -> list[ScoringNode]:
        return searcher.compose(list(map(differences_as_exclusions, as_expressions(queries))), self.operators)


@dataclass(frozen=True, slots=True)
class TwoStep(ComposingMethod):
    """Searches with a plain query, then ranks its first documents again by the exact scores of conjunctions.

    The plain query has ``maxpool`` for ∩. Documents that the conjunction does not match drop out, as in a search in
    one step.

    Attributes:
        operators: The operators of the second step.
        depth: How many documents are ranked again.

    Source: Krasakis, Yates, Kanoulas, Section 3.2.2, below Eq. 8.
    """

    operators: Operators = Operators(intersection="cpt")
    depth: int = DEPTH

    def __post_init__(self) -> None:
        checked_count("depth", self.depth)

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        as_expressions(request.queries)
        plain = ComposingMethod(replace(self.operators, intersection="maxpool"))
        first = plain.answer(searcher, replace(request, k=self.depth))
        docids = [[hit.docid for hit in hits] for hits in first.values()]
        nodes = self.compose(searcher, request.queries)
        scores = searcher.batch_score(nodes, docids, request.threads)
        rankings = {}
        for qid, listed, values in zip(first, docids, scores, strict=True):
            hits = [Hit(docid, score) for docid, score in zip(listed, values, strict=True) if score is not None]
            rankings[qid] = ranked(hits, request.k)
        asked = zip(first, request.queries, nodes, strict=True)
        if emptied := [one for one in asked if first[one[0]] and not rankings[one[0]]]:
            qids, queries, nodes = map(list, zip(*emptied, strict=True))
            warn_of_no_result(searcher.reader, qids, [()] * len(qids), queries, nodes)
        return rankings


def _composed(operators: str = "default", **others: Any) -> ComposingMethod:
    return ComposingMethod(Operators.named(operators, **others))


def _filtering(**operators: Any) -> Filtering:
    return Filtering(Operators(**operators, exclusion="any"))


def _two_step(depth: int = DEPTH, **operators: Any) -> TwoStep:
    return TwoStep(Operators(**{"intersection": "cpt", **operators}), depth)


def _rocchio(
    judged: str | Path | Qrels | None = None,
    beta: float = BETA,
    gamma: float = GAMMA,
    terms: int = TERMS,
    **operators: Any,
) -> Rocchio:
    if judged is None:
        remedy = "give judged=FILE, lines of `qid 0 docid relevance` (of --query, the qid is 1)"
        raise ArgumentError("method rocchio has no judged documents", remedy=remedy)
    from pyserini_compneg.eval import read_qrels

    qrels = read_qrels(judged) if isinstance(judged, (str, Path)) else judged
    return Rocchio(qrels, beta, gamma, terms, Operators(**operators))


M = TypeVar("M")
Makers: TypeAlias = Mapping[str, tuple[Callable[..., M], tuple[str, ...]]]
"""For each name of a method, the function that makes it and the names of its settings."""

METHODS: Makers[Method] = {
    "operators": (_composed, (*_OPERATORS, "operators")),
    "score-fusion": (ScoreFusion, ("depth",)),
    "score-fusion-scaled": (partial(ScoreFusion, scaled=True), ("depth",)),
    "filtering": (_filtering, ("union", "intersection", "cpt_terms", "cpt_weight")),
    "two-step": (_two_step, ("depth", *_OPERATORS)),
    "rocchio": (_rocchio, ("judged", "beta", "gamma", "terms", *_OPERATORS)),
}


def make_method(makers: Makers[M], name: str, settings: Mapping[str, Any]) -> M:
    """Makes a method from its name.

    Args:
        makers: The methods to choose from, such as ``METHODS``.
        name: The method's name.
        settings: Its settings.

    Raises:
        ArgumentError: There is no such method, it does not have a setting, or a number is wrong.
        QueryError: An operator is unknown, or a setting of an operator is out of range.

    >>> make_method(METHODS, "score-fusion", {"depth": 1000})
    ScoreFusion(scaled=False, depth=1000)
    """
    if name not in makers:
        raise ArgumentError(f"no method {shown(name)}; expected one of {', '.join(makers)}")
    make, known = makers[name]
    if unknown := sorted(settings.keys() - set(known)):
        raise ArgumentError(f"method {name}: unknown setting {shown(unknown[0])}; expected one of {', '.join(known)}")
    return make(**settings)
