"""The scoring tree: the form of a composed query.

Every node has ``children``, the nodes below it, and ``with_children``, the same node over other children. The first
children are ``wanted``: by their positive terms a query finds documents. The others only lower or leave out documents.
A node that has children also has ``rescaled``, the same node for scores multiplied by a factor.

A node is *open* while it lacks scores that only an index knows: a :class:`Damped` without ``best``, an
:class:`Excluding` with a ``share``. :func:`~pyserini_compneg.compose.resolve.resolved` closes it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

from pyserini_compneg.expression import Filter
from pyserini_compneg.support.errors import EncodingError, QueryError
from pyserini_compneg.support.vectors import SparseVector, checked, is_number

SMALLEST_WEIGHT = 1e-18
LARGEST_WEIGHT = 1e18
SMALLEST_PRODUCT_WEIGHT = 1e-288
"""The smallest weight of a product. It is this small because it may be the reciprocal of a product of 16 weights."""

LARGEST_DEGREE = 16
"""The largest power · operands of a product, and its largest root."""

_FLOOR_LOSS = 0.02
"""A document at the floor of :class:`Damped` loses up to this share, so that the documents there keep an order."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Σ w·d over signed weights. A document matches when it has a term of positive weight.

    Attributes:
        weights: The vector.
        kept: The wanted terms. Rounding keeps at least one of them. None means all terms with a positive weight.

    Raises:
        QueryError: Not a vector, or a weight whose magnitude exact arithmetic does not cover.
    """

    weights: SparseVector
    kept: Collection[str] | None = field(default=None, repr=False, compare=False)
    children: ClassVar[tuple[()]] = ()
    wanted: ClassVar[tuple[()]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights, "vector"))

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Product:
    """weight · (Π over the n operands of Σ (w·d)^power)^(1/root). A document matches when all operands do.

    Combined Pseudo-Terms in their factored form have the power 1/n and the root 1. In the L2 reading of Eq. 8 they have
    the power 2/n and the root 2. A product of plain scores has the power 1 and the root 1.

    A product of negative weight only lowers the scores of a sum, as the negative terms of a linear leaf do. No document
    matches it, so alone or in a maximum it finds nothing.

    Attributes:
        operands: Vectors of positive weights.
        power: Above 0, at most 1 and at most ``LARGEST_DEGREE`` / n, so that no product of weights leaves the range of
            a double. None means 1/n. The value 1/n is stored as None.
        root: A whole number from 1 to ``LARGEST_DEGREE``.
        weight: Multiplies the root. Its magnitude is from ``SMALLEST_PRODUCT_WEIGHT`` to ``LARGEST_WEIGHT``.

    Raises:
        QueryError: Fewer than two operands, an operand that has no term or a weight that is not positive, or a power, a
            root or a weight out of range.
    """

    operands: tuple[SparseVector, ...]
    power: float | None = None
    root: int = 1
    weight: float = 1.0
    children: ClassVar[tuple[()]] = ()
    wanted: ClassVar[tuple[()]] = ()

    def __post_init__(self) -> None:
        count = len(self.operands)
        if count < 2:
            raise QueryError(f"a product needs two or more operands, got {count}")
        operands = tuple(_checked_operand(operand, f"product[{i}].vector") for i, operand in enumerate(self.operands))
        object.__setattr__(self, "operands", operands)
        if self.power is not None:
            most = min(1.0, LARGEST_DEGREE / count)
            fits = is_number(self.power) and 0 < self.power <= most
            _check("power", fits, f"the power of {count} operands must be above 0 and at most {most:g}", self.power)
            object.__setattr__(self, "power", None if self.power == 1 / count else float(self.power))
        fits = isinstance(self.root, int) and is_number(self.root) and 1 <= self.root <= LARGEST_DEGREE
        _check("root", fits, f"the root must be a whole number from 1 to {LARGEST_DEGREE}", self.root)
        fits = is_number(self.weight) and SMALLEST_PRODUCT_WEIGHT <= abs(self.weight) <= LARGEST_WEIGHT
        limits = f"between {SMALLEST_PRODUCT_WEIGHT:g} and {LARGEST_WEIGHT:g} in magnitude"
        _check("weight", fits, f"the weight of a product must be {limits}", self.weight)
        object.__setattr__(self, "weight", float(self.weight))

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        return self

    @property
    def exponent(self) -> float:
        """The power as a number."""
        return 1 / len(self.operands) if self.power is None else self.power

    @property
    def is_sum_over_tuples(self) -> bool:
        """Whether the score is a weighted sum over the tuples of the operands' terms, as with pseudo-terms."""
        return self.power is None and self.root == 1

    @property
    def degree(self) -> float:
        """If all weights of the operands are multiplied by c, the score is multiplied by c to this power."""
        return 1.0 if self.is_sum_over_tuples else self.exponent * len(self.operands) / self.root

    @property
    def factors(self) -> list[tuple[SparseVector, int]]:
        """The distinct operands, each with its multiplicity. A search sums up each distinct operand once."""
        distinct = [operand for i, operand in enumerate(self.operands) if operand not in self.operands[:i]]
        return [(operand, self.operands.count(operand)) for operand in distinct]


@dataclass(frozen=True, slots=True)
class Combination:
    """A value made of the children's values alone. A kind has a ``key`` in JSON, and is ``called`` so in messages."""

    children: tuple[ScoringNode, ...]
    key: ClassVar[str]
    called: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", _checked_children(self.children, self.called))

    @property
    def wanted(self) -> tuple[ScoringNode, ...]:
        return self.children

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        return replace(self, children=tuple(children))

    def rescaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Max(Combination):
    """The best value among the children that a document matches.

    Raises:
        QueryError: No children, or a child that is not a scoring node.
    """

    key = "max"
    called = "a maximum"


@dataclass(frozen=True, slots=True)
class Sum(Combination):
    """The sum of the children's values. A document matches when it matches any of them.

    The negative terms of a linear child, and a product of negative weight, count whatever else the document matches.

    Raises:
        QueryError: No children, or a child that is not a scoring node.
    """

    key = "sum"
    called = "a sum"


@dataclass(frozen=True, slots=True)
class Damped:
    """max(s · (1 − weight · r³), min(s, floor) · (1 − 0.02 r³)) with r = min(1, maxᵢ bᵢ / bestᵢ).

    Here s and bᵢ are the scores of the child and of an excluded part. A document matches when it matches the child. A
    score s of 0 or less stays as it is: damping only lowers.

    The power was chosen on the dev splits of ExcluIR, NegConstraint and FilmSets. With a
    larger power, more documents keep their score, and fewer documents of an excluded class are pushed down.

    Attributes:
        child: The wanted part.
        excluded: Vectors of positive weights, products of positive weight, and damped nodes of these. Only
            positive impacts count.
        best: The best score of each excluded part in the index, above 0. Empty in an open node.
        weight: λ, above 0 and at most 1. A document loses at most this share of its score.
        floor: Damping does not push a score below 98 % of this value. 0 means no limit.
        context: Of an open node, a vector that closing it adds to the child with a small weight.

    Raises:
        QueryError: An excluded part of another kind or without terms, or a number out of its range.
    """

    child: ScoringNode
    excluded: tuple[ScoringNode, ...]
    best: tuple[float, ...]
    weight: float
    floor: float = 0.0
    context: SparseVector = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _checked_children((self.child,), "a damped score")
        if not self.excluded or len(self.best) not in (0, len(self.excluded)):
            counts = f"got {len(self.excluded)} and {len(self.best)}"
            raise QueryError(f"a damped score needs excluded parts and a best score for each, {counts}", where="best")
        _check_excluded([_without_damping(part) for part in self.excluded])
        said = "the best of a damped score must be a finite number above 0"
        for best in self.best:
            _check("best", _is_finite(best) and best > 0, said, best)
        fits = is_number(self.weight) and 0 < self.weight <= 1
        _check("weight", fits, "the weight of a damped score must be above 0 and at most 1", self.weight)
        said = "the floor of a damped score must be a finite number, 0 or more"
        _check("floor", _is_finite(self.floor) and self.floor >= 0, said, self.floor)

    @property
    def children(self) -> tuple[ScoringNode, ...]:
        return (self.child, *self.excluded)

    @property
    def wanted(self) -> tuple[ScoringNode, ...]:
        return (self.child,)

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        return replace(self, child=children[0], excluded=tuple(children[1:]))

    def rescaled(self, factor: float) -> Self:
        return replace(self, best=tuple(score * factor for score in self.best), floor=self.floor * factor)

    def damped(self, score: float, ratio: float) -> float:
        """The damped score: ``score`` is the score of the child, ``ratio`` the largest bᵢ / bestᵢ."""
        if score <= 0:
            return score
        cube = min(1.0, ratio) ** 3
        return max(score * (1 - self.weight * cube), min(score, self.floor) * (1 - _FLOOR_LOSS * cube))


@dataclass(frozen=True, slots=True)
class Excluding:
    """The child's score, for documents that match every required part and no excluded part. No other document matches.

    An excluded vector or product matches a document that it scores above its limit. An excluded filter matches a
    document that it accepts. A required vector matches a document that it scores above 0.

    Attributes:
        child: The wanted part.
        excluded: Vectors and products of positive weights, and filters. Only positive impacts count.
        above: The limit of each excluded part, 0 or more. The limit of a filter is ignored. Empty in an open node.
        required: Vectors of positive weights. Only positive impacts count.
        share: Of an open node, the share of the best score of an excluded part that will be its limit.

    Raises:
        QueryError: No excluded and no required part, a part of another kind or without terms, or a wrong limit.
    """

    child: ScoringNode
    excluded: tuple[Linear | Product | Filter, ...] = ()
    above: tuple[float, ...] = ()
    required: tuple[Linear, ...] = ()
    share: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        _checked_children((self.child,), "what excludes")
        _check_excluded([part for part in self.excluded if not isinstance(part, Filter)])
        if not all(
            isinstance(part, Linear) and part.weights and min(part.weights.values()) > 0 for part in self.required
        ):
            raise QueryError("each part must be a vector of positive weights", where="required")
        fits = is_number(self.share) and 0 <= self.share < 1
        _check("share", fits, "the share of a best score must be 0 or more and below 1", self.share)
        limits = 0 if self.share else len(self.excluded)
        if not (self.excluded or self.required) or len(self.above) != limits:
            counts = f"got {len(self.excluded)} and {len(self.above)}"
            raise QueryError(f"an excluding node needs excluded parts and a limit for each, {counts}", where="above")
        for limit in self.above:
            _check("above", _is_finite(limit) and limit >= 0, "a limit must be a finite number, 0 or more", limit)

    @property
    def children(self) -> tuple[ScoringNode, ...]:
        return (self.child, *self.scored, *self.required)

    @property
    def scored(self) -> tuple[ScoringNode, ...]:
        """The excluded parts that are no filters."""
        return tuple(part for part in self.excluded if not isinstance(part, Filter))

    @property
    def wanted(self) -> tuple[ScoringNode, ...]:
        return (self.child,)

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        child, *others = children
        parts: list[Any] = others  # checked by the constructor
        excluded = tuple(part if isinstance(part, Filter) else parts.pop(0) for part in self.excluded)
        return replace(self, child=child, excluded=excluded, required=tuple(parts))

    def rescaled(self, factor: float) -> Self:
        return replace(self, above=tuple(limit * factor for limit in self.above))


@dataclass(frozen=True, slots=True)
class All:
    """The score 0 for every document: the query ``*``. It is a whole query, and no part of another node."""

    children: ClassVar[tuple[()]] = ()
    wanted: ClassVar[tuple[()]] = ()

    def with_children(self, children: Sequence[ScoringNode]) -> Self:
        return self

    def rescaled(self, factor: float) -> Self:
        return self


ScoringNode: TypeAlias = Linear | Product | Max | Sum | Damped | Excluding | All


def _check(where: str, fits: bool, what: str, value: object) -> None:
    if not fits:
        raise QueryError(f"{what}, got {value!r}", where=where)


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) <= sys.float_info.max


def _checked_weights(weights: SparseVector, path: str) -> dict[str, float]:
    """Drops zeros, and refuses weights whose scores would not be exact."""
    try:
        result = checked(weights, path)
    except EncodingError as error:
        raise error.recast(QueryError) from None
    limits = f"between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g} in magnitude, the limits of exact arithmetic"
    for term, weight in result.items():
        if not SMALLEST_WEIGHT <= abs(weight) <= LARGEST_WEIGHT:
            raise QueryError(f"the weight of {term!r} must be {limits}, got {weight!r}", where=path)
    return result


def _checked_operand(weights: SparseVector, path: str) -> dict[str, float]:
    """Checks the weights of an operand of a product: all must be positive, and there must be at least one."""
    result = _checked_weights(weights, path)
    if not result:
        raise QueryError("an operand of a product needs a term", where=path)
    for term, weight in result.items():
        if weight < 0:
            raise QueryError(f"the weight of {term!r} in a product must be positive, got {weight!r}", where=path)
    return result


def _without_damping(node: ScoringNode) -> ScoringNode:
    return _without_damping(node.child) if isinstance(node, Damped) else node


def _check_excluded(parts: Sequence[object]) -> None:
    for part in parts:
        weights = part.weights.values() if isinstance(part, Linear) else [getattr(part, "weight", -1.0)]
        if not isinstance(part, (Linear, Product)) or not weights or min(weights) < 0:
            raise QueryError("each part must be a vector or a product, of positive weights", where="excluded")


def _checked_children(children: Sequence[object], name: str) -> tuple[ScoringNode, ...]:
    if not children:
        raise QueryError(f"{name} needs a child")
    nodes = tuple(child for child in children if isinstance(child, ScoringNode) and not isinstance(child, All))
    if len(nodes) < len(children):
        kinds = ", ".join(type(child).__name__ for child in children)
        raise QueryError(f"the children of {name} must be scoring nodes, got {kinds}")
    return nodes
