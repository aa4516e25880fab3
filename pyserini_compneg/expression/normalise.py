"""Set algebra on expressions with free complements, which a tree cannot hold.

A query language lets NOT stand anywhere. The tree knows only differences, because the complement of a set cannot be
ranked. While a text is read, each part of it is a ``Region``. Every operation gives a region again, and moves
complements up until a difference absorbs them. A text whose region still holds a complement at the end has no positive
part and is refused. These are exactly the expressions that a document about none of the atoms would satisfy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pyserini_compneg.expression.faults import NOTHING_BEFORE, Fault
from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.expression.tree import Difference, Exclusion, Expression, Intersection, Union, leaves
from pyserini_compneg.support.errors import ArgumentError

NO_POSITIVE_PART = "NOT has nothing to take away from; a query needs a positive part, as in: birds NOT parrots"

_MAX_COPIED_ATOMS = 32


@dataclass(frozen=True, slots=True)
class Region:
    """The set ``inside ∪ ¬outside``; at least one of the two is present, and a missing one adds nothing."""

    inside: Expression | None
    outside: Expression | None = None
    """The set whose complement is taken; None for a region that a tree can hold."""

    origin: int = 0
    """The position in the text where the complement was written, for messages."""

    condition: tuple[str, str] | None = None
    """The field and the value of ``field=value``, which is a condition after NOT! and text elsewhere."""

    phrases: tuple[str, ...] = ()
    """The texts of alternatives that are plain words, which words beside them join; none for anything else."""

    @property
    def expression(self) -> Expression | None:
        """The region as a tree, or None if it still holds a complement."""
        return self.inside if self.outside is None else None


def complement(region: Region, origin: int) -> Region:
    """¬(I ∪ ¬O) = O minus I."""
    if region.outside is None:
        return Region(None, region.inside, origin)
    if region.inside is None:
        return Region(region.outside)
    return Region(Difference(region.outside, region.inside))


def exclusion(left: Region, right: Region, origin: int) -> Region:
    """Left without what matches right, a condition or an expression."""
    if left.expression is None:
        raise Fault(NOTHING_BEFORE, origin)
    if right.condition is not None:
        field, value = right.condition
        try:
            return Region(Exclusion(left.expression, Filter({field: value})))
        except ArgumentError as error:
            raise Fault(error.message, origin) from None
    if right.expression is None:
        raise Fault("NOT! takes away documents that match; after it, a NOT needs a positive part", origin)
    return Region(Exclusion(left.expression, right.expression))


def union(regions: Sequence[Region]) -> Region:
    """The insides are united, and ¬O₁ ∪ ¬O₂ = ¬(O₁ ∩ O₂)."""
    inside = [region.inside for region in regions if region.inside is not None]
    outside = [region.outside for region in regions if region.outside is not None]
    return Region(_united(inside), _intersected(outside), _origin(regions))


def intersection(regions: Sequence[Region]) -> Region:
    """Intersects the regions without complements, subtracts the pure complements, and distributes over mixed regions.

    If all regions have complements, the result is a complement, too (de Morgan).
    """
    plain = _intersected([region.expression for region in regions if region.expression])
    if plain is None:
        origin = _origin(regions)
        return complement(union([complement(region, origin) for region in regions]), origin)
    excluded = _united([region.outside for region in regions if region.outside and region.inside is None])
    result = plain if excluded is None else Difference(plain, excluded)
    for region in regions:
        if region.inside is not None and region.outside is not None:
            result = _restricted(result, region.inside, region.outside)
    return Region(result)


def strict_intersection(regions: Sequence[Region], origin: int) -> Region:
    """The documents that have every region."""
    operands = tuple(region.expression for region in regions if region.expression is not None)
    if len(operands) < len(regions):
        said = "an operand of AND! needs a positive part; write A NOT B to lower documents, A NOT! B to remove them"
        raise Fault(said, origin)
    return Region(Intersection(operands, strict=True))


def _restricted(base: Expression, inside: Expression, outside: Expression) -> Expression:
    r"""Base ∩ (inside ∪ ¬outside), as (base ∩ inside) ∪ (base \ outside): it keeps ``inside`` as positive evidence.

    That form copies the base, and nested copies could grow exponentially. So a large base takes the form
    base \ (outside \ inside).
    """
    if len(list(islice(leaves(base), _MAX_COPIED_ATOMS + 1))) > _MAX_COPIED_ATOMS:
        return Difference(base, Difference(outside, inside))
    return Union((Intersection((base, inside)), Difference(base, outside)))


def _united(operands: list[Expression]) -> Expression | None:
    return Union(tuple(operands)) if len(operands) > 1 else next(iter(operands), None)


def _intersected(operands: list[Expression]) -> Expression | None:
    return Intersection(tuple(operands)) if len(operands) > 1 else next(iter(operands), None)


def _origin(regions: Sequence[Region]) -> int:
    return next((region.origin for region in regions if region.outside is not None), 0)
