"""Expressions as JSON values, for programs. An atom is a text; any other node is an object with one key."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.expression.tree import MAX_DEPTH, Atom, Difference, Exclusion, Expression, Intersection, Union
from pyserini_compneg.support.errors import ArgumentError, QueryError

JsonExpression: TypeAlias = "str | dict[str, list[JsonExpression]] | dict[str, dict[str, list[str]]]"

_NODES: dict[str, Callable[[tuple[Expression, ...]], Expression]] = {
    "union": Union,
    "intersection": Intersection,
    "strict_intersection": lambda operands: Intersection(operands, strict=True),
    "difference": lambda operands: Difference(*operands),
    "exclusion": lambda operands: Exclusion(*operands),
}


def to_json(expression: Expression | Filter) -> JsonExpression:
    """The JSON value of an expression. ``from_json`` turns the value back into the expression.

    >>> to_json(Difference(Union((Atom("birds"), Atom("bats"))), Atom("parrots")))
    {'difference': [{'union': ['birds', 'bats']}, 'parrots']}
    """
    match expression:
        case Atom(text):
            return text
        case Difference(left, right):
            return {"difference": [to_json(left), to_json(right)]}
        case Exclusion(left, right):
            return {"exclusion": [to_json(left), to_json(right)]}
        case Filter():
            return {"filter": expression.to_json()}
        case Union(operands):
            return {"union": [to_json(operand) for operand in operands]}
        case Intersection(operands, strict=strict):
            return {"strict_intersection" if strict else "intersection": [to_json(operand) for operand in operands]}
    raise AssertionError(f"no expression: {expression!r}")


def from_json(value: object, source: str) -> Expression:
    """Reads an expression from a value that ``json.loads`` returned.

    Args:
        value: A text, or an object whose only key is ``union``, ``intersection``, ``strict_intersection`` (AND!),
            ``difference`` or ``exclusion`` (NOT!). The right side of an ``exclusion`` may be
            ``{"filter": {field: value}}``.
        source: The origin of the value, for the message.

    Raises:
        QueryError: The value has another shape. The message holds the path inside the value.

    >>> from_json({"union": ["birds", "bats"]}, "queries.jsonl:1")
    Union(operands=(Atom(text='birds'), Atom(text='bats')))
    """
    try:
        return _read(value, "$", 1)
    except QueryError as error:
        raise error.at(source) from None


def _read(value: object, path: str, level: int) -> Expression:
    if isinstance(value, str):
        if not value.strip():
            raise QueryError(f"a text must not be blank, got {value!r}", where=path)
        return Atom(value)
    if level == MAX_DEPTH:
        raise QueryError(f"the value is more than {MAX_DEPTH} levels deep", remedy="flatten it")
    if not (isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _NODES):
        *others, last = (f'"{kind}"' for kind in _NODES)
        expected = f"expected a text or an object with one key, {', '.join(others)} or {last}"
        raise QueryError(f"{expected}, got {reprlib.repr(value)}", where=path)
    kind, members = next(iter(value.items()))
    path = f"{path}.{kind}"
    if not isinstance(members, list):
        raise QueryError(f"expected a list of operands, got {reprlib.repr(members)}", where=path)
    if kind in ("difference", "exclusion") and len(members) != 2:
        raise QueryError(f"expected two operands, [left, right], got {len(members)}", where=path)
    if len(members) < 2:
        raise QueryError(f"expected two or more operands, got {len(members)}", where=path)
    if kind == "exclusion" and isinstance(members[1], Mapping) and members[1].keys() == {"filter"}:
        left = _read(members[0], f"{path}[0]", level + 1)
        try:
            return Exclusion(left, Filter(members[1]["filter"]))
        except (ArgumentError, QueryError) as error:
            raise error.recast(QueryError).at(f"{path}[1].filter") from None
    operands = tuple(_read(member, f"{path}[{i}]", level + 1) for i, member in enumerate(members))
    return _NODES[kind](operands)
