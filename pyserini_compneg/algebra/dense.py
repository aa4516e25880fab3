"""Union, intersection and difference of dense query vectors, which have no terms, only directions.

What the operators give is a *subspace*: one direction, or for a disjunction the plane of several. It is kept as the
vectors that span it, all rows of one array, until :func:`orthonormal` makes of it what documents are compared with.

Source: Widdows 2003, Orthogonal Negation in Vector Spaces, Section 2; Widdows and Peters 2003, Word Vectors and Quantum
Logic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float64]
"""Rows, (count, dimensions)."""

DenseDifference: TypeAlias = Callable[[Vectors, Vectors], Vectors]

_DEPENDENT = 1e-5
"""Relative length below which a direction is the rounding of encoders, whose numbers have 32 bits."""


def addition(spaces: Sequence[Vectors]) -> Vectors:
    """The sum of all vectors: one direction, between those of the operands.

    >>> addition([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])])
    array([[1., 1.]])
    """
    return np.asarray(np.concatenate(spaces).sum(axis=0, keepdims=True))


def disjunction(spaces: Sequence[Vectors]) -> Vectors:
    """The linear sum of the operands' spaces, {λ₁b₁ + … + λₙbₙ}: the smallest that holds all of them.

    >>> disjunction([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])])
    array([[1., 0.],
           [0., 1.]])
    """
    return np.concatenate(spaces)


def orthogonal(a: Vectors, negatives: Vectors) -> Vectors:
    """a − its projection on the span of the negatives, Widdows, Eq. 1 for one negative and Eq. 2 for several.

    Negatives may depend on each other: they are replaced by an orthonormal basis of what they span.

    >>> orthogonal(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """
    basis = _basis(negatives)
    return _without_rounding(a - a @ basis.T @ basis, a)


def subtraction(a: Vectors, negatives: Vectors) -> Vectors:
    """a − Σ bᵢ.

    >>> subtraction(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0]]))
    array([[ 1., -1.]])
    """
    return _without_rounding(a - negatives.sum(axis=0), a)


def ignore(a: Vectors, negatives: Vectors) -> Vectors:
    """a: the negatives are left out."""
    return a


def orthonormal(space: Vectors) -> Vectors:
    """The orthonormal basis of a space that documents are compared with.

    A single direction keeps its sign, which a plane has not; of vectors that depend on each other the first has it.

    >>> orthonormal(np.array([[-3.0, -4.0]]))
    array([[-0.6, -0.8]])
    >>> orthonormal(np.array([[1.0, 0.0], [2.0, 0.0]]))
    array([[1., 0.]])
    """
    basis = _basis(space)
    return basis if len(basis) != 1 else basis * np.sign(space[0] @ basis[0])


def _without_rounding(rest: Vectors, before: Vectors) -> Vectors:
    """The vectors of which more than rounding is left."""
    kept = np.linalg.norm(rest, axis=1) > _DEPENDENT * np.linalg.norm(before, axis=1)
    return np.asarray(rest[kept])


def _basis(vectors: Vectors) -> Vectors:
    """Orthonormal rows that span what the vectors do, by their singular values."""
    if not len(vectors):
        return vectors
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(directions[sizes > _DEPENDENT * sizes[0]])


DENSE_UNIONS: Mapping[str, Callable[[Sequence[Vectors]], Vectors]] = MappingProxyType(
    {"disjunction": disjunction, "addition": addition}
)
DENSE_DIFFERENCES: Mapping[str, DenseDifference] = MappingProxyType(
    {"orthogonal": orthogonal, "subtraction": subtraction, "ignore": ignore}
)
"""The operators by the names that users choose them by."""
