"""The expression tree: a query as a set of documents, before it is encoded.

There are five kinds of nodes, frozen and compared by value. ``children`` are the expressions below a node, ``wanted``
are the children that the node does not take away, and ``with_children`` replaces the children in their order. The
constructors limit a tree to ``MAX_DEPTH`` levels, so every function on trees may recurse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeAlias

from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.terminal import shown

MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Atom:
    """The documents about a text; blanks around the text are dropped.

    Raises:
        QueryError: The text is blank.
    """

    text: str
    depth: ClassVar[int] = 1
    children: ClassVar[tuple[Expression, ...]] = ()
    wanted: ClassVar[tuple[Expression, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise QueryError(f"the text of an atom must not be blank, got {shown(self.text)}")
        object.__setattr__(self, "text", self.text.strip())

    def with_children(self, children: Iterable[Expression]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class _Operands:
    """Base of Union and Intersection."""

    operands: tuple[Expression, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.operands, tuple) or len(self.operands) < 2:
            raise QueryError(f"{name} needs a tuple of two or more operands, got {shown(self.operands)}")
        object.__setattr__(self, "depth", _depth_above(name, self.operands))

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.operands

    @property
    def wanted(self) -> tuple[Expression, ...]:
        return self.operands

    def with_children(self, children: Iterable[Expression]) -> Self:
        return replace(self, operands=tuple(children))


@dataclass(frozen=True, slots=True)
class Union(_Operands):
    """The documents that match any operand (∪, OR).

    Raises:
        QueryError: Fewer than two operands, an operand that is not an expression, or a tree deeper than ``MAX_DEPTH``.
    """


@dataclass(frozen=True, slots=True)
class Intersection(_Operands):
    """The documents that match all operands (∩, AND).

    A strict intersection (AND!) gives the same scores, but finds only documents that match every operand.

    Raises:
        QueryError: Fewer than two operands, an operand that is not an expression, or a tree deeper than ``MAX_DEPTH``.

    >>> Intersection((Atom("goat"), Atom("cheese")), strict=True)
    Intersection(operands=(Atom(text='goat'), Atom(text='cheese')), strict=True)
    """

    strict: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        strict = ", strict=True" if self.strict else ""
        return f"Intersection(operands={self.operands!r}{strict})"


@dataclass(frozen=True, slots=True)
class Difference:
    r"""The documents of ``left`` that are not in ``right`` (\, NOT).

    Raises:
        QueryError: A side that is not an expression, or a tree deeper than ``MAX_DEPTH``.
    """

    left: Expression
    right: Expression
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above("Difference", self.children))

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.left, self.right

    @property
    def wanted(self) -> tuple[Expression, ...]:
        return (self.left,)

    def with_children(self, children: Iterable[Expression]) -> Self:
        left, right = children
        return replace(self, left=left, right=right)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The documents of ``left`` that do not match ``right``, whatever their scores (NOT!, MUST_NOT).

    ``right`` is an expression, or a filter with one field and one value.

    Raises:
        QueryError: A side is neither an expression nor such a filter, or the tree is deeper than ``MAX_DEPTH``.
    """

    left: Expression
    right: Expression | Filter
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        right = self.right
        if isinstance(right, Filter) and [len(values) for values in right.fields.values()] != [1]:
            what = f"a filter in an Exclusion must have one field and one value, got {right}"
            raise QueryError(what, remedy="exclude others in turn")
        object.__setattr__(self, "depth", _depth_above("Exclusion", self.children))

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left,) if isinstance(self.right, Filter) else (self.left, self.right)

    @property
    def wanted(self) -> tuple[Expression, ...]:
        return (self.left,)

    def with_children(self, children: Iterable[Expression]) -> Self:
        left, *rest = children
        return replace(self, left=left, right=rest[0] if rest else self.right)


Expression: TypeAlias = Atom | Union | Intersection | Difference | Exclusion


def leaves(expression: Expression) -> Iterator[Atom]:
    """Yields every atom from left to right. A repeated atom is yielded each time.

    >>> [atom.text for atom in leaves(Union((Atom("b"), Difference(Atom("a"), Atom("b")))))]
    ['b', 'a', 'b']
    """
    if isinstance(expression, Atom):
        yield expression
    for child in expression.children:
        yield from leaves(child)


def atoms(expression: Expression) -> list[str]:
    """The distinct texts of the atoms, which are encoded, in order of first appearance.

    >>> atoms(Union((Atom("b"), Difference(Atom("a"), Atom("b")))))
    ['b', 'a']
    """
    return list(dict.fromkeys(atom.text for atom in leaves(expression)))


def _depth_above(name: str, operands: tuple[Expression, ...]) -> int:
    for operand in operands:
        if not isinstance(operand, Expression):
            raise QueryError(f"an operand of {name} must be an expression, got {shown(operand)}")
    depth = 1 + max(operand.depth for operand in operands)
    if depth > MAX_DEPTH:
        raise QueryError(f"an expression may be {MAX_DEPTH} levels deep, this one is deeper", remedy="flatten it")
    return depth
