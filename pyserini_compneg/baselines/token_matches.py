"""Explains scores of late interaction: the document's token that each token of a query met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyserini_compneg.baselines.late_interaction import LateInteraction, TokenMatch
from pyserini_compneg.baselines.reranking import document_texts, signed_parts
from pyserini_compneg.compose import Query
from pyserini_compneg.compose.rewrite import without_exclusions
from pyserini_compneg.search.ranked_hits import as_expressions
from pyserini_compneg.search.searcher import SignedImpactSearcher


class PartMatches(NamedTuple):
    """A part of a query beside a document.

    Attributes:
        text: The atom.
        score: The sum of the similarities, or their mean if the model's files say ``meanmaxsim``; negative for a part
            that the query excludes.
        tokens: The tokens of the atom that count, and what each met. Similarities are negative in excluded parts.
    """

    text: str
    score: float
    tokens: tuple[TokenMatch, ...]


def token_matches(
    searcher: SignedImpactSearcher, model: LateInteraction, query: Query, docids: Sequence[str]
) -> dict[str, list[PartMatches]]:
    """The matches of each atom of a query in documents, by their ids. NOT! and what it excludes are left out.

    Args:
        searcher: An open searcher, whose index keeps the texts.
        model: The model.
        query: An expression; a composed query has no tokens.
        docids: The documents.

    Raises:
        QueryError: The query is no expression.
        IndexFormatError: The index has no texts.
        EncodingError: The model fails on a text.
    """
    (expression,) = as_expressions([query])
    parts = list(signed_parts(without_exclusions(expression)))
    texts = document_texts(searcher, docids)
    found = {}
    for docid, text in texts.items():
        matches = model.matches([(part.text, text) for part, _ in parts], [part.without for part, _ in parts])
        found[docid] = [
            _signed(model, part.text, 1 if is_wanted else -1, each)
            for (part, is_wanted), each in zip(parts, matches, strict=True)
        ]
    return found


def _signed(model: LateInteraction, text: str, sign: int, matches: Sequence[TokenMatch]) -> PartMatches:
    import numpy as np

    tokens = tuple(match._replace(similarity=sign * match.similarity) for match in matches)
    return PartMatches(text, float(model.total(np.array([match.similarity for match in tokens]))), tokens)
