"""Turns checked parameters into a query, its operators and its filter, within the limits of the server."""

from __future__ import annotations

from pyserini_compneg.compose import Operators, Query, quantised
from pyserini_compneg.compose.json_form import from_json as composed_from_json
from pyserini_compneg.compose.queries import ParsedQuery, parsed_query
from pyserini_compneg.compose.rewrite import differences_as_exclusions
from pyserini_compneg.compose.scoring import Excluding
from pyserini_compneg.compose.trees import leaf_vectors, nodes
from pyserini_compneg.expression import Atom, Filter, from_json, parse
from pyserini_compneg.expression.filters import read_conditions
from pyserini_compneg.expression.tree import leaves
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.reading import decompose, tagged_reading
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.serve.parameter_types import MOST_CHARACTERS
from pyserini_compneg.serve.parameters import (
    ExplainParameters,
    FilterParameters,
    OperatorParameters,
    QueryParameters,
    SearchBody,
    SearchParameters,
)
from pyserini_compneg.serve.settings import Limits
from pyserini_compneg.support.errors import ArgumentError

_MOST_VALUES = 10_000
"""The limit on the values of a filter. The engine keeps the last filters in memory."""

_PAIRS_OF_ATOM = 60
"""The limit on pairs for each atom. Pairs are chosen among all terms, so each atom costs more with more atoms."""


def read_query(
    asked: SearchParameters | ExplainParameters | SearchBody, limits: Limits, language: str
) -> tuple[ParsedQuery, Operators, Filter | None]:
    """The query, its operators and its filter or None, for an index of texts in a language."""
    query, allowed = parsed_query(_query(asked, language)), _filter(asked)
    chosen = asked.model_dump(include=set(OperatorParameters.model_fields) - {"strict"}, exclude_none=True)
    operators = Operators.named(chosen.pop("operators"), **chosen)
    if asked.strict:
        query = query.changed(differences_as_exclusions)
    _check_cost(query, operators, limits)
    return query, operators, allowed


def read_words(text: str, tags: str | None) -> Decomposition:
    """The decomposition of plain words by the given tags, or by the model's tags."""
    return decompose(text) if tags is None else tagged_reading(text, tags.split(","))


def _query(asked: QueryParameters | SearchBody, language: str) -> Query:
    if isinstance(asked, SearchBody) and asked.query is None:
        return _composed_elsewhere(asked)
    assert asked.query is not None
    match asked.read:
        case "expression":
            return parse(asked.query)
        case "plain":
            return Atom(asked.query)
    if asked.tags is None and language != ENGLISH:
        what, remedy = "the model reads English, and the language of this index is", "write an expression, or give tags"
        raise ArgumentError(f"{what} {language}", where="read", remedy=remedy)
    return read_words(asked.query, asked.tags)


def _composed_elsewhere(body: SearchBody) -> Query:
    if isinstance(body.expression, str):  # as in a file of topics
        return parse(body.expression)
    if body.expression is not None:
        return from_json(body.expression, "expression")
    if body.query_tokens is not None:
        return quantised(composed_from_json({"vector": body.query_tokens}, "query_tokens"))
    if body.vector is not None:
        return composed_from_json({"vector": body.vector}, "vector")
    return composed_from_json(body.score, "score")


def _filter(asked: FilterParameters) -> Filter | None:
    if asked.filter is None:
        return None
    made = Filter(read_conditions(asked.filter) if isinstance(asked.filter, list) else asked.filter)
    if (count := sum(map(len, made.fields.values()))) > _MOST_VALUES:
        raise ArgumentError(
            f"expected at most {_MOST_VALUES} values, got {count}", where="filter", remedy="search in parts"
        )
    return made


def _check_cost(query: ParsedQuery, operators: Operators, limits: Limits) -> None:
    if query.composed is not None:
        vectors = [len(vector) for vector in leaf_vectors(query.composed)]
        filters = sum(len(node.excluded) for node in nodes(query.composed) if isinstance(node, Excluding))
        _check("vectors and filters", len(vectors) + filters, limits.vectors)
        _check("terms", sum(vectors), limits.terms)
        return
    texts = [] if query.expression is None else [atom.text for atom in leaves(query.expression)]
    _check("atoms", len(texts), limits.atoms)
    _check("characters in its atoms", sum(map(len, texts)), MOST_CHARACTERS)
    if operators.intersection == "cpt-pairs":
        pairs = len(texts) * operators.cpt_terms
        _check("atoms and cpt_terms, multiplied,", pairs, _PAIRS_OF_ATOM * limits.atoms)


def _check(parts: str, count: int, most: int) -> None:
    if count > most:
        raise ArgumentError(f"the query has {count:,} {parts}, and this server takes at most {most:,}")
