"""What a query became, and why documents stand where they stand, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_compneg.compose import Operators, Query, ScoringNode, is_empty, query_terms, query_text, to_json
from pyserini_compneg.compose.rewrite import verbalised
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.expression import Atom, Expression, atoms, format_expression, parse
from pyserini_compneg.search.explanation import Explanation
from pyserini_compneg.search.searcher import SignedImpactSearcher

RANKED = 1000
"""Documents beyond this rank are not looked for; as deep as runs are by default."""


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """A document, its score taken apart, and its place in the ranking.

    Attributes:
        title: What the stored source calls it, if it was stored.
        rank: From 1; None beyond ``RANKED``, and where the query does not retrieve the document.
        explanation: The score and its parts.
    """

    title: str | None
    rank: int | None
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ExplainedQuery:
    """A query as it was asked, composed and answered.

    Attributes:
        text: The query for people to read.
        expression: What it means; None for a query that came composed.
        operators: How the expression was composed.
        node: What it became: whole weights, but those of a query that came composed.
        weight_scale: What the weights of ``node`` are to be divided by for the unit of the encoder.
        atoms: The query that each atom of the expression would be on its own; those of a ``vanilla`` operator are texts
            that verbalise it.
        documents: The documents asked about, in the order in which they were asked about.
    """

    text: str
    expression: Expression | None
    operators: Operators
    node: ScoringNode
    weight_scale: float
    atoms: Mapping[str, ScoringNode]
    documents: tuple[ExplainedDocument, ...]


def explain_query(
    searcher: SignedImpactSearcher, query: Query, docids: Sequence[str] = (), text: str | None = None
) -> ExplainedQuery:
    """Explains a query, and why documents stand where they stand in its ranking.

    Args:
        searcher: An open searcher, which composes and searches.
        query: The query.
        docids: Documents to explain; one that is given twice counts once.
        text: The query for people to read; by default the expression.

    Raises:
        QuerySyntaxError: A text that is no expression.
        EncodingError: An atom that the encoder cannot encode.
        CompositionError: A query of which no term is known.
        CollectionError: The index has no such document.
    """
    query = parse(query) if isinstance(query, str) else query
    expression = None if isinstance(query, ScoringNode) else query
    wordings = [] if expression is None else atoms(verbalised(expression, searcher.operators))
    node, *vectors = searcher.compose([query, *map(Atom, wordings)])  # every text is encoded once
    text = text or query_text(query)
    if is_empty(node):
        raise CompositionError(f"query {text!r}: it wants no term that is known, so it finds nothing")
    return ExplainedQuery(
        text,
        expression,
        searcher.operators,
        node,
        1.0 if expression is None else searcher.weight_scale,
        dict(zip(wordings, vectors, strict=True)),
        _documents(searcher, node, list(dict.fromkeys(docids))),
    )


def _documents(
    searcher: SignedImpactSearcher, node: ScoringNode, docids: Sequence[str]
) -> tuple[ExplainedDocument, ...]:
    explanations = [searcher.explain(node, docid) for docid in docids]  # an unknown one is known before the search
    if not explanations:
        return ()
    ranks = {hit.docid: rank for rank, hit in enumerate(searcher.search(node, RANKED), 1)}
    return tuple(ExplainedDocument(searcher.title(one.docid), ranks.get(one.docid), one) for one in explanations)


def to_object(explained: ExplainedQuery) -> dict[str, Any]:
    """The explanation as one JSON object; everything unrounded.

    ``composed`` holds what ``compose`` writes, and ``weights`` the signed terms and pairs in the unit of the encoder,
    heaviest first.
    """
    expression, scale = explained.expression, explained.weight_scale
    return {
        "query": explained.text,
        "expression": None if expression is None else format_expression(expression),
        "operators": {kind: getattr(explained.operators, kind) for kind in ("union", "intersection", "difference")},
        "weight_scale": scale,
        "composed": to_json(explained.node),
        "weights": dict(query_terms(explained.node, scale)),
        "atoms": {text: dict(query_terms(node, scale)) for text, node in explained.atoms.items()},
        "documents": [
            {
                "docid": document.explanation.docid,
                "title": document.title,
                "rank": document.rank,
                "score": document.explanation.score,
                "matched": document.explanation.matched,
                "contributions": [part._asdict() for part in document.explanation.contributions],
            }
            for document in explained.documents
        ],
    }
