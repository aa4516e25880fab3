r"""From expressions to subspaces of a dense encoder's space, bottom-up.

These are the approximations:

- ∩ is the sum of its operands: the intersection of the subspaces themselves would be 0. An operand that is a plane, a
  disjunction, takes part with the sum of the vectors that span it.
- \ changes each vector that spans a plane on the left; a plane on the right is excluded as a whole by ``orthogonal``,
  and by ``subtraction`` with the sum of its vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.algebra.dense import DENSE_DIFFERENCES, DENSE_UNIONS, Vectors, addition, orthonormal
from pyserini_compneg.compose.rewrite import alternatives, conjunction, verbalised
from pyserini_compneg.errors import CompositionError, EncodingError
from pyserini_compneg.expression import Atom, Expression, Union, atoms

DENSE_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "union": (*DENSE_UNIONS, "vanilla"),
    "intersection": ("addition", "vanilla"),
    "difference": (*DENSE_DIFFERENCES, "vanilla"),
}
"""The operators by kind of node, the defaults first."""


class DenseQueryEncoder(Protocol):
    """Makes dense vectors of queries' texts."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each text, of length 1, (texts, dimensions)."""


@dataclass(frozen=True, slots=True)
class DenseOperators:
    """One operator for each kind of node.

    Attributes:
        union: ``disjunction``, ``addition`` or ``vanilla``.
        intersection: ``addition`` or ``vanilla``.
        difference: ``orthogonal``, ``subtraction``, ``ignore`` or ``vanilla``.

    Raises:
        CompositionError: An unknown name.
    """

    union: str = "disjunction"
    intersection: str = "addition"
    difference: str = "orthogonal"

    def __post_init__(self) -> None:
        """Checks every name."""
        for kind, choices in DENSE_OPERATORS.items():
            name = getattr(self, kind)
            if name not in choices:
                raise CompositionError(f"{kind} of dense vectors must be one of {', '.join(choices)}, got {name!r}")


def dense_queries(
    expressions: Sequence[Expression], encoder: DenseQueryEncoder, operators: DenseOperators
) -> list[Vectors]:
    """The subspace of each expression, as the rows of an orthonormal basis; none where nothing is left of it.

    All texts are encoded in one batch.

    Args:
        expressions: What is searched for.
        encoder: Gives the vectors of texts.
        operators: What stands for union, intersection and difference.

    Raises:
        EncodingError: A text that cannot be encoded.
    """
    rewritten = [verbalised(expression, operators) for expression in expressions]
    texts = list(dict.fromkeys(text for expression in rewritten for text in atoms(expression)))
    if not texts:
        return []
    vectors = encoder.encode_queries(texts).astype(np.float64)
    if len(vectors) != len(texts):
        raise EncodingError(f"the encoder must give a vector for each text, got {len(vectors)} for {len(texts)} texts")
    composer = _Composer(operators, dict(zip(texts, vectors[:, None, :], strict=True)))
    return [orthonormal(composer.compose(expression)) for expression in rewritten]


@dataclass(frozen=True, slots=True)
class _Composer:
    """Composes expressions without vanilla operators, of the space, one row, of each atom's text."""

    operators: DenseOperators
    spaces: Mapping[str, Vectors]

    def compose(self, expression: Expression) -> Vectors:
        match expression:
            case Atom(text):
                return self.spaces[text]
            case Union():
                unite = DENSE_UNIONS[self.operators.union]
                return unite([self.compose(member) for member in alternatives(expression)])
        parts = conjunction(expression)
        kept = [self.compose(member) for member in parts.kept]
        positive = addition(kept) if len(kept) > 1 else kept[0]
        if not parts.excluded:
            return positive
        excluded = np.concatenate([self.compose(member) for member in parts.excluded])
        return DENSE_DIFFERENCES[self.operators.difference](positive, excluded)
