"""Explanations as data: the composed form of a query, and the contributions to the scores of documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyserini_compneg.compose import Operators, Query, ScoringNode, is_empty, query_terms, to_json
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.compose.queries import parsed_queries, why_empty
from pyserini_compneg.compose.rewrite import verbalised
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.display.concepts import names_of
from pyserini_compneg.encode.hybrid import side
from pyserini_compneg.expression import Atom, Expression, Filter, atoms, format_expression
from pyserini_compneg.search.explanation import Explanation
from pyserini_compneg.search.request import query_name
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import QueryError

RANKED = 1000
"""The last rank that is searched for, equal to the default length of runs."""

_DOCUMENT_FIELDS = ("docid", "title", "rank", "score", "matched", "filtered_out")


@dataclass(frozen=True, slots=True)
class ExplainedQuery:
    """A query, its composed form, and documents.

    Attributes:
        text: The query as text for people.
        expression: The query's expression; None for a composed query.
        operators: The operators of the query.
        node: The query's composed form, with whole weights if it was composed here.
        weight_scale: Divides the weights of ``node`` into the unit of the encoder.
        unit: Divides the scores of documents into that unit; see ``SignedImpactSearcher.unit``.
        atoms: The composed form of each atom alone. A ``vanilla`` operator has one atom, the wording of its subtree.
        documents: The explanations of documents, in the order given.
        is_hybrid: Whether terms belong to two spaces.
        filter: The filter, or None.
        concepts: The names of the index's latents, by their numbers.
    """

    text: str
    expression: Expression | None
    operators: Operators
    node: ScoringNode
    weight_scale: float
    unit: float
    atoms: Mapping[str, ScoringNode]
    documents: tuple[Explanation, ...]
    is_hybrid: bool = False
    filter: Filter | None = None
    concepts: Sequence[str] = ()


def explain_query(
    searcher: SignedImpactSearcher,
    query: Query,
    docids: Sequence[str] = (),
    text: str | None = None,
    filter: Filter | None = None,
    operators: Operators | None = None,
) -> ExplainedQuery:
    """Explains a query, and the scores and ranks of documents.

    Args:
        searcher: An open searcher.
        query: The query.
        docids: The documents to explain. Repeated ids count once.
        text: The query as text for people; the default is the expression.
        filter: The filter, or None.
        operators: See ``SignedImpactSearcher.search``.

    Raises:
        EncodingError: The encoder cannot encode an atom.
        QueryError: The expression has a fault, or the query has no known term of positive weight.
        InputError: The index has no such document.
    """
    (query,) = parsed_queries([query])
    operators = chosen_operators(operators, searcher.operators)
    expression = query.expression
    wordings = [] if expression is None else atoms(verbalised(expression, operators))
    node, *vectors = searcher.compose([query, *map(Atom, wordings)], operators)  # one call encodes each text once
    text = text or query.text
    if is_empty(node):
        raise QueryError(f"query {text!r}: {why_empty(query)}, so it finds nothing")
    docids = list(dict.fromkeys(checked_list("docids", docids)))
    documents = [searcher.explain(node, docid, filter=filter) for docid in docids]  # an unknown document raises here
    name = query_name(query)
    hits = searcher.batch_search([node], [name], RANKED, filter=filter)[name] if documents else []
    ranks = {hit.docid: rank for rank, hit in enumerate(hits, 1)}
    return ExplainedQuery(
        text,
        expression,
        operators,
        node,
        1.0 if expression is None else searcher.weight_scale,
        searcher.unit(query),
        dict(zip(wordings, vectors, strict=True)),
        tuple(replace(one, title=searcher.title(one.docid), rank=ranks.get(one.docid)) for one in documents),
        searcher.is_hybrid,
        filter,
        searcher.reader.concepts,
    )


def sides(explanation: Explanation) -> dict[str, float]:
    """The part of a score from each space of ``bm25+MODEL``, and from pairs of terms of several, ``both``."""
    amounts: dict[str, list[float]] = {"bm25": [], "model": [], "latent": [], "both": []}
    for term, amount in explanation.contributions:
        amounts[side(term)].append(amount)
    return {name: math.fsum(parts) for name, parts in amounts.items() if parts}


def to_object(explained: ExplainedQuery) -> dict[str, Any]:
    """The explanation as one unrounded JSON object. ``weights`` are in the encoder's unit, heaviest first.

    ``concepts`` names the latents that occur, if the index names its latents.
    """
    expression, scale = explained.expression, explained.weight_scale
    terms = {
        term for node in (explained.node, *explained.atoms.values()) for leaf in leaf_vectors(node) for term in leaf
    }
    terms.update(part.term for document in explained.documents for part in document.contributions)
    concepts = names_of(terms, explained.concepts)
    return {
        "query": explained.text,
        "expression": None if expression is None else format_expression(expression),
        "operators": explained.operators.names,
        **({"filter": explained.filter.to_json()} if explained.filter else {}),
        "weight_scale": scale,
        "composed": to_json(explained.node),
        "weights": dict(query_terms(explained.node, scale)),
        "atoms": {text: dict(query_terms(node, scale)) for text, node in explained.atoms.items()},
        **({"concepts": concepts} if concepts else {}),
        "documents": [
            {
                **{name: getattr(document, name) for name in _DOCUMENT_FIELDS},
                **({"lowered": [one._asdict() for one in document.lowered]} if document.lowered else {}),
                **({} if document.passage is None else {"passage": document.passage}),
                **({"sides": sides(document)} if explained.is_hybrid else {}),
                "contributions": [part._asdict() for part in document.contributions],
            }
            for document in explained.documents
        ],
    }
