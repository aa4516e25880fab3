r"""Set identities that bring an expression into the form that vectors can express best.

All functions are pure, and these two keep the set that an expression means:

- ``alternatives``: (A ∪ B) ∪ C = A ∪ B ∪ C.
- ``conjunction``: every tree of ∩ and \ is ⋂ Aᵢ \ ⋃ Bⱼ, because
  (A ∩ B) ∩ C = A ∩ B ∩ C, (A \ B) ∩ C = (A ∩ C) \ B, (A \ B) \ C = A \ (B ∪ C). So a conjunction combines positive
  terms only, no negation inside it is lost, and operators for \ see all negatives at once.

``verbalised`` comes first: it replaces each subtree that is encoded as a whole by one atom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pyserini_compneg.expression import (
    Atom,
    Difference,
    Exclusion,
    Expression,
    Filter,
    Intersection,
    Union,
    format_expression,
    verbalise,
)
from pyserini_compneg.support.errors import QueryError


class OperatorNames(Protocol):
    """A choice of operators, for sparse vectors or for dense ones."""

    @property
    def union(self) -> str:
        """The operator of ∪."""

    @property
    def intersection(self) -> str:
        """The operator of ∩."""

    @property
    def difference(self) -> str:
        r"""The operator of \."""


_IN_OR = "in an OR that is an operand of AND"
_IN_NOT = "in what NOT takes away"
_IN_EXCLUDED = "in what NOT! excludes"
_REMEDIES = {
    _IN_OR: ("write out the OR", "write out the OR, or write AND there"),
    _IN_NOT: ("write NOT! outside of it", "write AND there, where only scores count"),
    _IN_EXCLUDED: ("", "write AND there, which excludes what has all operands"),
}
"""What to write instead of a NOT! and of an AND! in each place where they cannot stand."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    r"""The set ⋂ kept \ ⋃ excluded, without the documents that match a barred part.

    Attributes:
        kept: Atoms and unions; none only while a set is put together.
        excluded: The expressions that are taken away, no unions among them; empty for a pure intersection.
        barred: What NOT! excludes, no unions among them.
        required: The operands of each AND!, each operand once; a document must have every one of them.
    """

    kept: tuple[Expression, ...]
    excluded: tuple[Expression, ...] = ()
    barred: tuple[Expression | Filter, ...] = ()
    required: tuple[tuple[Expression, ...], ...] = ()

    def restricted(self, *others: Conjunction) -> Conjunction:
        """The intersection with other sets."""
        sets = (self, *others)
        return Conjunction(
            tuple(part for one in sets for part in one.kept),
            tuple(part for one in sets for part in one.excluded),
            tuple(part for one in sets for part in one.barred),
            tuple(group for one in sets for group in one.required),
        )


def verbalised(expression: Expression, operators: OperatorNames) -> Expression:
    """Replaces every subtree whose operator is ``vanilla`` by an atom, the wording of the subtree.

    >>> from pyserini_compneg.compose import Operators
    >>> tree = Difference(Union((Atom("birds"), Atom("bats"))), Atom("parrots"))
    >>> verbalised(tree, Operators(union="vanilla"))
    Difference(left=Atom(text='birds or bats'), right=Atom(text='parrots'))
    """
    match expression:
        case Atom():
            return expression
        case Union(operands) if operators.union != "vanilla":
            return Union(tuple(verbalised(operand, operators) for operand in operands))
        case Intersection(operands) if operators.intersection != "vanilla":
            return replace(expression, operands=tuple(verbalised(operand, operators) for operand in operands))
        case Difference(left, right) if operators.difference != "vanilla":
            return Difference(verbalised(left, operators), verbalised(right, operators))
        case Exclusion(left, right):
            right = right if isinstance(right, Filter) else verbalised(right, operators)
            return Exclusion(verbalised(left, operators), right)
    return Atom(verbalise(expression))


def alternatives(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a union and of the unions directly in it; of any other expression, the expression itself.

    >>> alternatives(Union((Union((Atom("a"), Atom("b"))), Atom("c"))))
    (Atom(text='a'), Atom(text='b'), Atom(text='c'))
    """
    if not isinstance(expression, Union):
        return (expression,)
    return tuple(member for operand in expression.operands for member in alternatives(operand))


def conjunction(expression: Expression) -> Conjunction:
    r"""Gathers the parts that a tree of ∩ and \ keeps, and those that it excludes.

    >>> conjunction(Intersection((Difference(Atom("a"), Atom("b")), Atom("c"))))
    Conjunction(kept=(Atom(text='a'), Atom(text='c')), excluded=(Atom(text='b'),), barred=(), required=())
    """
    match expression:
        case Atom() | Union():
            return Conjunction((expression,))
        case Intersection(operands):
            inner = Conjunction(()).restricted(*map(conjunction, operands))
            groups = (*inner.required, tuple(dict.fromkeys(operands)))
            return replace(inner, required=groups) if expression.strict else inner
        case Difference(left, right):
            inner = conjunction(left)
            return replace(inner, excluded=(*inner.excluded, *alternatives(right)))
        case Exclusion(left, right):
            inner = conjunction(left)
            parts = (right,) if isinstance(right, Filter) else alternatives(right)
            return replace(inner, barred=(*inner.barred, *parts))


def hardened(expression: Expression) -> Expression:
    """The expression with NOT! for every NOT, but not within what a NOT takes away.

    >>> hardened(Union((Atom("a"), Difference(Atom("b"), Atom("c")))))
    Union(operands=(Atom(text='a'), Exclusion(left=Atom(text='b'), right=Atom(text='c'))))
    """
    match expression:
        case Union(operands) | Intersection(operands):
            return replace(expression, operands=tuple(map(hardened, operands)))
        case Difference(left, right) | Exclusion(left, right):
            return Exclusion(hardened(left), right)
    return expression


def check_exclusions(expression: Expression, place: str | None = None, in_and: bool = False) -> None:
    """Makes sure that each NOT! and AND! decides what is found, and that what NOT! excludes is no difference.

    Args:
        expression: The expression.
        place: Where it stands, one of ``_REMEDIES``, if neither can stand there.
        in_and: Whether it is an operand of AND.

    Raises:
        QueryError: NOT! or AND! stands where only scores count, or what follows NOT! has a NOT.
    """
    is_strict = isinstance(expression, Intersection) and expression.strict
    if place and (is_strict or isinstance(expression, Exclusion)):
        remedy = _REMEDIES[place][is_strict]
        raise QueryError(f"{format_expression(expression)!r} cannot stand {place}; {remedy}")
    match expression:
        case Union(operands):
            for operand in operands:
                check_exclusions(operand, _IN_OR if in_and else place)
        case Intersection(operands):
            for operand in operands:
                check_exclusions(operand, place, in_and=True)
        case Difference(left, right):
            check_exclusions(left, place, in_and)
            check_exclusions(right, _IN_NOT)
        case Exclusion(left, right):
            if not isinstance(right, Filter):
                if holds_difference(right):
                    said = f"NOT! excludes what matches, and {format_expression(right)!r} takes a part of that back"
                    raise QueryError(f"{said}; leave out that part, or unite what is kept by OR outside")
                check_exclusions(right, _IN_EXCLUDED)
            check_exclusions(left, place, in_and)


def holds_difference(expression: Expression) -> bool:
    """Whether a difference stands anywhere in the expression."""
    return without_differences(expression) != expression


def without_differences(expression: Expression) -> Expression:
    r"""The expression with every difference replaced by its left side.

    >>> without_differences(Union((Atom("bats"), Difference(Atom("birds"), Atom("parrots")))))
    Union(operands=(Atom(text='bats'), Atom(text='birds')))
    """
    match expression:
        case Atom():
            return expression
        case Union(operands) | Intersection(operands):
            return replace(expression, operands=tuple(map(without_differences, operands)))
        case Difference(left, _) | Exclusion(left, _):
            return without_differences(left)


def without_exclusions(expression: Expression) -> Expression:
    """The expression with every NOT! replaced by its left side, and every AND! by AND: what counts for scores.

    >>> without_exclusions(Difference(Exclusion(Atom("birds"), Filter({"year": ["1990"]})), Atom("parrots")))
    Difference(left=Atom(text='birds'), right=Atom(text='parrots'))
    >>> without_exclusions(Intersection((Atom("birds"), Atom("pets")), strict=True))
    Intersection(operands=(Atom(text='birds'), Atom(text='pets')))
    """
    match expression:
        case Union(operands):
            return Union(tuple(map(without_exclusions, operands)))
        case Intersection(operands):
            return Intersection(tuple(map(without_exclusions, operands)))
        case Difference(left, right):
            return Difference(without_exclusions(left), without_exclusions(right))
        case Exclusion(left, _):
            return without_exclusions(left)
    return expression
