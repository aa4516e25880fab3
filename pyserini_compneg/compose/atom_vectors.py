"""The vectors of a composition's atoms, as an encoder makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyserini_compneg.compose.rewrite import alternatives, conjunction
from pyserini_compneg.compose.scoring import ScoringNode
from pyserini_compneg.compose.trees import is_empty
from pyserini_compneg.expression import Expression, atoms, format_expression
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import SparseVector, checked, is_pseudo_term


class QueryEncoder(Protocol):
    """Turns texts into sparse vectors."""

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text, in the order of the texts. A vector does not depend on the rest of the batch."""


def atom_vectors(texts: Sequence[str], encoder: QueryEncoder) -> dict[str, dict[str, float]]:
    """The vector of each text, all encoded in one batch and checked."""
    vectors = encoder.encode_batch(list(texts)) if texts else []
    if not isinstance(vectors, Sequence) or not all(isinstance(vector, Mapping) for vector in vectors):
        raise EncodingError(f"the encoder must give a list of mappings of terms to weights, got {shown(vectors)}")
    if len(vectors) != len(texts):
        raise EncodingError(f"the encoder must give a vector for each text, got {len(vectors)} for {len(texts)} texts")
    for text, vector in zip(texts, vectors, strict=True):
        if reserved := [term for term in vector if isinstance(term, str) and is_pseudo_term(term)]:
            form = "a∩b for pairs and ¬t for complements"
            what = f"the term {reserved[0]!r} is reserved, {form}"
            raise EncodingError(what, where=f"atom {text!r}", remedy="leave it out")
    return {text: checked(vector, f"atom {text!r}") for text, vector in zip(texts, vectors, strict=True)}


def warn_of_unknown_atoms(
    expressions: Sequence[Expression], trees: Sequence[ScoringNode], vectors: Mapping[str, SparseVector]
) -> None:
    """Warns of atoms without a known term.

    A query that finds nothing is reported by the caller, unless AND! empties it: then only some atoms are unknown.
    """
    unknown: dict[str, str] = {}
    for expression, tree in zip(expressions, trees, strict=True):
        texts = atoms(expression)
        missing = [text for text in texts if not (vectors[text] or text in unknown)]
        is_strict = any(conjunction(member).required for member in alternatives(expression))
        is_emptied = is_strict and any(vectors[text] for text in texts)
        if missing and (is_emptied or not is_empty(tree)):
            name = shown(format_expression(expression))
            unknown |= {text: f"{shown(text)} (query {name})" for text in missing}
    warn_of("atom", "atoms", "no term that the encoder knows, so it matches no document", unknown, vectors)
