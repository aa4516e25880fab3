"""Set algebra on expressions with free complements, which an expression tree cannot hold.

The query language allows NOT anywhere. The tree has only differences, because the complement of a set cannot be ranked.
So the parser represents each part of a text as a ``Region``. Every operation returns a region, and moves complements up
until a difference absorbs them. If the final region still holds a complement, the text has no positive part and is
plain text. Exactly these expressions would match a document that is about none of the atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pyserini_compneg.expression.faults import NOTHING_BEFORE, Fault
from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.expression.tree import Difference, Exclusion, Expression, Intersection, Union, leaves
from pyserini_compneg.support.errors import ArgumentError

_MAX_COPIED_ATOMS = 32


@dataclass(frozen=True, slots=True)
class Region:
    """The set ``inside ∪ ¬outside``. At least one of the two is present; a missing part is the empty set."""

    inside: Expression | None
    outside: Expression | None = None
    """The set whose complement is taken; None if a tree can hold the region."""

    origin: int = 0
    """The position in the text where the complement was written, for messages."""

    condition: tuple[str, str] | None = None
    """The field and the value of ``field=value``. This is a condition after NOT! and text in other places."""

    phrases: tuple[str, ...] = ()
    """The alternatives, if all are phrases, which neighbouring words may join; empty for any other region."""

    @property
    def expression(self) -> Expression | None:
        """The region as a tree, or None if it still holds a complement."""
        return self.inside if self.outside is None else None


def complement(region: Region, origin: int) -> Region:
    r"""¬(I ∪ ¬O) = O \ I."""
    if region.outside is None:
        return Region(None, region.inside, origin)
    if region.inside is None:
        return Region(region.outside)
    return Region(Difference(region.outside, region.inside))


def exclusion(left: Region, right: Region, origin: int) -> Region:
    """The left region without the documents that match the right region, a condition or an expression."""
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
    """Unites the inner sets, and intersects the outer sets: ¬O₁ ∪ ¬O₂ = ¬(O₁ ∩ O₂)."""
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
    """The documents that match every region."""
    operands = tuple(region.expression for region in regions if region.expression is not None)
    if len(operands) < len(regions):
        said = "an operand of AND! needs a positive part; write A NOT B to lower documents, A NOT! B to remove them"
        raise Fault(said, origin)
    return Region(Intersection(operands, strict=True))


def _restricted(base: Expression, inside: Expression, outside: Expression) -> Expression:
    r"""Base ∩ (inside ∪ ¬outside) as (base ∩ inside) ∪ (base \ outside), which keeps ``inside`` as positive evidence.

    This form copies the base, so nested copies could grow exponentially. A large base therefore takes the form base \
    (outside \ inside).
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
