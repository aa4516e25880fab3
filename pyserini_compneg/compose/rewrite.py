r"""Set identities that rewrite an expression into the form that vectors express best.

All functions are pure. Two of them keep the set that an expression means:

- ``alternatives``: (A ∪ B) ∪ C = A ∪ B ∪ C.
- ``conjunction``: every tree of ∩ and \ is ⋂ Aᵢ \ ⋃ Bⱼ, because
  (A ∩ B) ∩ C = A ∩ B ∩ C, (A \ B) ∩ C = (A ∩ C) \ B, (A \ B) \ C = A \ (B ∪ C). So a conjunction combines positive
  terms only, no negation inside it is lost, and operators for \ see all negatives at once.

``verbalised`` comes first: it replaces each subtree that is encoded as a whole by one atom.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple, Protocol

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


class _OperatorNames(Protocol):
    """A choice of operators, for sparse vectors or for dense ones."""

    @property
    def union(self) -> object: ...
    @property
    def intersection(self) -> object: ...
    @property
    def difference(self) -> object: ...


_IN_OR = "in an OR that is an operand of AND"
_IN_NOT = "in what NOT takes away"
_IN_EXCLUDED = "in what NOT! excludes"
_REMEDIES = {
    _IN_OR: ("write out the OR", "write out the OR, or write AND there"),
    _IN_NOT: ("write NOT! outside of it", "write AND there, where only scores count"),
    _IN_EXCLUDED: ("", "write AND there, which excludes what has all operands"),
}
"""Remedies for NOT! and AND!, by the place where the operators cannot stand."""


class Conjunction(NamedTuple):
    r"""The set ⋂ kept \ ⋃ excluded, without the documents that match a barred part."""

    kept: tuple[Expression, ...]
    """Atoms and unions."""
    excluded: tuple[Expression, ...] = ()
    """The right sides of NOT; a union gives one entry per alternative. Empty for a pure intersection."""
    barred: tuple[Expression | Filter, ...] = ()
    """The right sides of NOT!; a union gives one entry per alternative."""
    required: tuple[tuple[Expression, ...], ...] = ()
    """The operands of each AND!, each operand once; a document must have every one of them."""


def verbalised(expression: Expression, operators: _OperatorNames) -> Expression:
    """Replaces every subtree whose operator is ``vanilla`` by an atom with the wording of the subtree.

    >>> from pyserini_compneg.compose import Operators
    >>> tree = Difference(Union((Atom("birds"), Atom("bats"))), Atom("parrots"))
    >>> verbalised(tree, Operators(union="vanilla"))
    Difference(left=Atom(text='birds or bats'), right=Atom(text='parrots'))
    """
    names = {Union: operators.union, Intersection: operators.intersection, Difference: operators.difference}
    if names.get(type(expression)) == "vanilla":
        return Atom(verbalise(expression))
    return expression.with_children(verbalised(child, operators) for child in expression.children)


def alternatives(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a union, including operands of unions directly inside it. Any other expression is returned alone.

    >>> alternatives(Union((Union((Atom("a"), Atom("b"))), Atom("c"))))
    (Atom(text='a'), Atom(text='b'), Atom(text='c'))
    """
    if not isinstance(expression, Union):
        return (expression,)
    return tuple(member for operand in expression.operands for member in alternatives(operand))


def conjunction(expression: Expression) -> Conjunction:
    r"""Collects the parts that a tree of ∩ and \ keeps, and the parts that it excludes.

    >>> conjunction(Intersection((Difference(Atom("a"), Atom("b")), Atom("c"))))
    Conjunction(kept=(Atom(text='a'), Atom(text='c')), excluded=(Atom(text='b'),), barred=(), required=())
    """
    match expression:
        case Atom() | Union():
            return Conjunction((expression,))
        case Intersection(operands):
            joined = (tuple(chain.from_iterable(parts)) for parts in zip(*map(conjunction, operands), strict=True))
            inner = Conjunction(*joined)
            groups = (*inner.required, tuple(dict.fromkeys(operands)))
            return inner._replace(required=groups) if expression.strict else inner
        case Difference(left, right):
            inner = conjunction(left)
            return inner._replace(excluded=(*inner.excluded, *alternatives(right)))
        case Exclusion(left, right):
            inner = conjunction(left)
            parts = (right,) if isinstance(right, Filter) else alternatives(right)
            return inner._replace(barred=(*inner.barred, *parts))


def differences_as_exclusions(expression: Expression) -> Expression:
    """The expression with NOT! for every NOT, except inside the right side of a NOT.

    >>> differences_as_exclusions(Union((Atom("a"), Difference(Atom("b"), Atom("c")))))
    Union(operands=(Atom(text='a'), Exclusion(left=Atom(text='b'), right=Atom(text='c'))))
    """
    if isinstance(expression, (Difference, Exclusion)):
        return Exclusion(differences_as_exclusions(expression.left), expression.right)
    return expression.with_children(map(differences_as_exclusions, expression.children))


def check_exclusions(expression: Expression, place: str | None = None, in_and: bool = False) -> None:
    """Refuses NOT! and AND! in places where only scores count, and NOT in the right side of NOT!.

    ``place`` describes where the expression stands, if neither operator is allowed there. ``in_and`` marks an operand
    of AND.
    """
    is_strict = isinstance(expression, Intersection) and expression.strict
    if place and (is_strict or isinstance(expression, Exclusion)):
        remedy = _REMEDIES[place][is_strict]
        raise QueryError(f"{format_expression(expression)!r} cannot stand {place}", remedy=remedy)
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
                if without_differences(right) != right:
                    what = f"NOT! excludes what matches, and {format_expression(right)!r} takes a part of that back"
                    raise QueryError(what, remedy="leave out that part, or write it as an alternative of an OR outside")
                check_exclusions(right, _IN_EXCLUDED)
            check_exclusions(left, place, in_and)


def without_differences(expression: Expression) -> Expression:
    r"""The expression with every difference replaced by its left side.

    >>> without_differences(Union((Atom("bats"), Difference(Atom("birds"), Atom("parrots")))))
    Union(operands=(Atom(text='bats'), Atom(text='birds')))
    """
    if isinstance(expression, (Difference, Exclusion)):
        return without_differences(expression.left)
    return expression.with_children(map(without_differences, expression.children))


def without_exclusions(expression: Expression) -> Expression:
    """The expression with the left side for every NOT!, and AND for every AND!: the part that determines scores.

    >>> without_exclusions(Difference(Exclusion(Atom("birds"), Filter({"year": ["1990"]})), Atom("parrots")))
    Difference(left=Atom(text='birds'), right=Atom(text='parrots'))
    >>> without_exclusions(Intersection((Atom("birds"), Atom("pets")), strict=True))
    Intersection(operands=(Atom(text='birds'), Atom(text='pets')))
    """
    match expression:
        case Intersection(operands):
            return Intersection(tuple(map(without_exclusions, operands)))
        case Exclusion(left, _):
            return without_exclusions(left)
    return expression.with_children(map(without_exclusions, expression.children))
