"""Composed queries as repeated tokens, which is how stock Anserini takes whole weights."""

from __future__ import annotations

from collections.abc import Iterator

from pyserini_compneg.compose.scoring import Linear, Max, Product, ScoringNode, Sum, leaf_vectors
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.vectors import SparseVector

MOST_TOKENS = 1_000_000
_LONGEST_TOKEN = 255
_OURS = "--output-format jsonl, for python -m pyserini_compneg.search"


def token_line(qid: str, node: ScoringNode) -> str:
    r"""A query as ``qid<TAB>tokens``, each term as often as its weight says, without the line's end.

    ``io.anserini.search.SearchCollection`` reads it with ``-topicReader TsvString -impact -pretokenized``.

    Args:
        qid: The query's id.
        node: A linear query with positive whole weights.

    Raises:
        CompositionError: Any other query; the message says what to do about it.

    >>> token_line("7", Linear({"birds": 2.0, "andes": 1.0}))
    '7\tbirds birds andes'
    """
    for term, weight in ((term, weight) for vector in leaf_vectors(node) for term, weight in vector.items()):
        if weight < 0:
            raise _refusal(qid, f"a negative weight, {weight:g} of {term!r}", f"use {_OURS}")
    kinds = {type(part) for part in _nodes(node)}
    for kind, what, remedy in (
        (Product, "a product", f"use --cpt materialised, or {_OURS}"),
        (Max, "a maximum", f"use --union maxpool or addition, or {_OURS}"),
        (Sum, "a sum of vectors", f"use {_OURS}"),
    ):
        if kind in kinds:
            raise _refusal(qid, what, remedy)
    assert isinstance(node, Linear)
    _check_tokens(qid, node.weights)
    return f"{qid}\t{' '.join(term for term, weight in node.weights.items() for _ in range(int(weight)))}"


def _check_tokens(qid: str, weights: SparseVector) -> None:
    for term, weight in weights.items():
        if weight != int(weight):
            raise _refusal(qid, f"a fractional weight, {weight:g} of {term!r}", f"use {_OURS}")
        if any(character.isspace() for character in term) or len(term) > _LONGEST_TOKEN:
            raise _refusal(qid, f"a term that is no token, {term[:40]!r}", f"use {_OURS}")
    if (tokens := int(sum(weights.values()))) > MOST_TOKENS:
        raise _refusal(qid, f"{tokens} tokens (the limit is {MOST_TOKENS})", f"lower --weight-scale, or use {_OURS}")


def _nodes(node: ScoringNode) -> Iterator[ScoringNode]:
    yield node
    if isinstance(node, (Max, Sum)):
        for child in node.children:
            yield from _nodes(child)


def _refusal(qid: str, what: str, remedy: str) -> CompositionError:
    return CompositionError(f"query {qid}: tsv cannot hold {what}; {remedy}")
