"""Composed queries as repeated tokens, the form in which stock Anserini takes whole weights."""

from __future__ import annotations

from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.compose.trees import leaf_vectors, nodes
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import SparseVector, is_pair

MOST_TOKENS = 1_000_000
MOST_TERMS = 1024
"""Lucene's limit on the clauses of a query."""

_FINEST = 2**20
"""The finest weights of pairs are multiples of 1 / 2^20, see :func:`quantisation.with_rounded_pairs`."""

_LONGEST_TOKEN = 255
_REMEDIES = {Product: "use --cpt materialised", Max: "use --union maxpool or addition"}
_OURS = "--output-format jsonl, for compneg search"


def token_line(qid: str, node: ScoringNode) -> str:
    r"""A query as ``qid<TAB>tokens``, without a line end. Each term is repeated as often as its weight says.

    ``io.anserini.search.SearchCollection`` reads this line with ``-topicReader TsvString -impact -pretokenized``.

    >>> token_line("7", Linear({"birds": 2.0, "andes": 1.0}))
    '7\tbirds birds andes'
    """
    if (obstacle := stock_obstacle(node)) is not None:
        kind, what = obstacle
        remedy = f"{_REMEDIES[kind]}, or {_OURS}" if kind else f"use {_OURS}"
        raise _refusal(qid, what, remedy)
    weights = whole_weights(node)
    _check_tokens(qid, weights)
    return f"{qid}\t{' '.join(term for term, weight in weights.items() for _ in range(weight))}"


def stock_obstacle(node: ScoringNode) -> tuple[type[Product | Max] | None, str] | None:
    """The first reason why stock Anserini cannot run a query, or None.

    >>> stock_obstacle(Linear({"birds": 2.0, "parrots": -1.0}))
    (None, "a negative weight, -1 of 'parrots'")
    """
    weights = [(term, weight) for vector in leaf_vectors(node) for term, weight in vector.items()]
    for term, weight in weights:
        if weight < 0:
            return None, f"a negative weight, {weight:g} of {term!r}"
    parts = list(nodes(node))
    if any(isinstance(part, Damped) for part in parts):
        return None, "a damped score"
    if (strict := next((part for part in parts if isinstance(part, Excluding)), None)) is not None:
        return None, "NOT!" if strict.excluded else "AND!"
    products = [part for part in parts if isinstance(part, Product)]
    if any(product.weight < 0 for product in products):
        return None, "a product of negative weight"
    if any(not product.is_sum_over_tuples for product in products):
        return None, "a product with powers or a root of its own"
    if products:
        return Product, "a product"
    if any(isinstance(part, Max) for part in parts):
        return Max, "a maximum"
    if not isinstance(node, Linear):
        return None, "a sum of vectors" if isinstance(node, Sum) else "more than one vector"
    fineness = _fineness(node)
    for term, weight in weights:
        if not (weight * fineness).is_integer():
            return None, f"a fractional weight, {weight:g} of {term!r}"
    if len(weights) > MOST_TERMS:
        return None, f"{len(weights)} terms (Lucene's limit is {MOST_TERMS})"
    return None


def whole_weights(node: ScoringNode) -> dict[str, int]:
    """The weights of a query without a :func:`stock_obstacle`.

    Those of a query with pairs are multiplied by the least power of two that makes them whole, and so are its scores.

    >>> whole_weights(Linear({"andes∩birds": 17.25, "birds": 50.0}))
    {'andes∩birds': 69, 'birds': 200}
    """
    assert isinstance(node, Linear)
    fineness = _fineness(node)
    return {term: int(weight * fineness) for term, weight in node.weights.items()}


def _fineness(node: Linear) -> int:
    """What makes the weights of a query with pairs whole; 1 for other queries."""
    if not any(map(is_pair, node.weights)):
        return 1
    return min(_FINEST, max(float(weight).as_integer_ratio()[1] for weight in node.weights.values()))


def _check_tokens(qid: str, weights: SparseVector) -> None:
    for term in weights:
        if any(character.isspace() for character in term) or len(term) > _LONGEST_TOKEN:
            raise _refusal(qid, f"a term that is not a token, {term[:40]!r}", f"use {_OURS}")
    if (tokens := int(sum(weights.values()))) > MOST_TOKENS:
        raise _refusal(qid, f"{tokens} tokens (the limit is {MOST_TOKENS})", f"lower --weight-scale, or use {_OURS}")


def _refusal(qid: str, what: str, remedy: str) -> QueryError:
    return QueryError(f"tsv cannot hold {what}", where=f"query {qid}", remedy=remedy)
