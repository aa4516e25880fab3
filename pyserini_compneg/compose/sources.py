"""What a composition asks for: vectors of an encoder, and best scores of the index that will be searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias, TypeVar

from pyserini_compneg.compose.json_form import query_line
from pyserini_compneg.compose.rewrite import alternatives, conjunction
from pyserini_compneg.compose.scoring import ScoringNode
from pyserini_compneg.compose.trees import is_empty
from pyserini_compneg.expression import Expression, atoms, format_expression
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.gathered import warn_of
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import SparseVector, checked, is_pseudo_term

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

TopScores: TypeAlias = Callable[[Sequence[ScoringNode], int], Sequence[Sequence[float]]]
"""The scores of the documents that are best for each query in an index, best first, and at most that many."""

FIRST_PAGE = 10
"""The number of best scores that are asked for."""


class QueryEncoder(Protocol):
    """Turns texts into sparse vectors."""

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text, in the order of the texts; the other texts of the batch do not change it."""


def atom_vectors(texts: Sequence[str], encoder: QueryEncoder) -> dict[str, dict[str, float]]:
    """The vector of each text, all encoded in one batch and checked.

    Raises:
        EncodingError: As for :func:`scoring_trees`.
    """
    vectors = encoder.encode_batch(list(texts)) if texts else []
    if not isinstance(vectors, Sequence) or not all(isinstance(vector, Mapping) for vector in vectors):
        raise EncodingError(f"the encoder must give a list of mappings of terms to weights, got {shown(vectors)}")
    if len(vectors) != len(texts):
        raise EncodingError(f"the encoder must give a vector for each text, got {len(vectors)} for {len(texts)} texts")
    for text, vector in zip(texts, vectors, strict=True):
        if reserved := [term for term in vector if isinstance(term, str) and is_pseudo_term(term)]:
            form = "a∩b for pairs and ¬t for complements"
            raise EncodingError(f"atom {text!r}: the term {reserved[0]!r} is reserved, {form}; leave it out")
    return {text: checked(vector, f"atom {text!r}") for text, vector in zip(texts, vectors, strict=True)}


def warn_of_unknown_atoms(
    expressions: Sequence[Expression], trees: Sequence[ScoringNode], vectors: Mapping[str, SparseVector]
) -> None:
    """Warns of atoms without a known term.

    A query that finds nothing at all is the caller's to report, unless AND! empties it: the other atoms are known.
    """
    unknown: dict[str, str] = {}
    for expression, tree in zip(expressions, trees, strict=True):
        texts = atoms(expression)
        missing = [text for text in texts if not vectors[text] and text not in unknown]
        is_strict = any(conjunction(member).required for member in alternatives(expression))
        is_emptied = is_strict and any(vectors[text] for text in texts)
        if missing and (is_emptied or not is_empty(tree)):
            name = shown(format_expression(expression))
            unknown |= {text: f"{shown(text)} (query {name})" for text in missing}
    warn_of("atom", "atoms", "no term that the encoder knows, so it matches no document", unknown, vectors)


class Unanswered(Exception):  # noqa: N818  # no error: the composition is resumed with the answer
    """The composition needs an answer of the index."""


class Answers:
    """What the index answered. A composition that needs more stops, and starts again when all have asked."""

    def __init__(self, top_scores: TopScores) -> None:
        self._top_scores = top_scores
        self._known: dict[str, Sequence[float]] = {}
        self._asked: dict[str, ScoringNode] = {}

    def best(self, nodes: Sequence[ScoringNode]) -> list[Sequence[float]]:
        """The scores of the first page of each query, best first.

        Raises:
            Unanswered: One of them is not yet known.
        """
        keys = [query_line(node) for node in nodes]
        if missing := {key: node for key, node in zip(keys, nodes, strict=True) if key not in self._known}:
            self._asked |= missing
            raise Unanswered
        return [self._known[key] for key in keys]

    def ask(self) -> None:
        """Asks the index for all that is not yet known."""
        asked, self._asked = self._asked, {}
        if asked:
            self._known |= zip(asked, self._top_scores(list(asked.values()), FIRST_PAGE), strict=True)


def for_each(compose: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """The result for each part; if one needs an answer, the others ask what they need, too.

    Raises:
        Unanswered: A part needs an answer that is not yet known.
    """
    results = []
    for part in parts:
        with suppress(Unanswered):
            results.append(compose(part))
    if len(results) < len(parts):
        raise Unanswered
    return results


def answered(compositions: Sequence[Callable[[], _Result]], answers: Answers | None) -> list[_Result]:
    """The result of each composition; what they ask the index is asked for all of them at once."""
    results: dict[int, _Result] = {}
    while len(results) < len(compositions):
        for i, compose in enumerate(compositions):
            if i not in results:
                with suppress(Unanswered):
                    results[i] = compose()
        if answers:
            answers.ask()
    return [results[i] for i in range(len(compositions))]
