r"""Set identities that bring an expression into the form that vectors can express best.

All functions are pure, and these two keep the set that an expression means:

- ``alternatives``: (A ∪ B) ∪ C = A ∪ B ∪ C.
- ``conjunction``: every tree of ∩ and \ is ⋂ Aᵢ \ ⋃ Bⱼ, because
  (A ∩ B) ∩ C = A ∩ B ∩ C, (A \ B) ∩ C = (A ∩ C) \ B, (A \ B) \ C = A \ (B ∪ C). So a conjunction combines positive
  terms only, no negation inside it is lost, and operators for \ see all negatives at once.

``verbalised`` comes first: it replaces each subtree that is encoded as a whole by one atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union, verbalise


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


@dataclass(frozen=True, slots=True)
class Conjunction:
    r"""The set ⋂ kept \ ⋃ excluded.

    Attributes:
        kept: One or more atoms or unions.
        excluded: The expressions that are taken away, no unions among them; empty for a pure intersection.
    """

    kept: tuple[Expression, ...]
    excluded: tuple[Expression, ...] = ()


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
            return Intersection(tuple(verbalised(operand, operators) for operand in operands))
        case Difference(left, right) if operators.difference != "vanilla":
            return Difference(verbalised(left, operators), verbalised(right, operators))
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
    Conjunction(kept=(Atom(text='a'), Atom(text='c')), excluded=(Atom(text='b'),))
    """
    match expression:
        case Atom() | Union():
            return Conjunction((expression,))
        case Intersection(operands):
            parts = [conjunction(operand) for operand in operands]
            kept = tuple(member for part in parts for member in part.kept)
            return Conjunction(kept, tuple(member for part in parts for member in part.excluded))
        case Difference(left, right):
            inner = conjunction(left)
            return Conjunction(inner.kept, (*inner.excluded, *alternatives(right)))


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
            return type(expression)(tuple(map(without_differences, operands)))
        case Difference(left, _):
            return without_differences(left)
