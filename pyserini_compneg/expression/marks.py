"""QUEST's seven query templates, read from marked queries and written as text.

Source: Malaviya, Shaw, Chang, Lee, Toutanova 2023, QUEST: A Retrieval Dataset of Entity-Seeking Queries with Implicit
Set Operations. ``verbalise`` also covers trees that match no template.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyserini_compneg.expression.tree import Atom, Difference, Exclusion, Expression, Intersection, Union
from pyserini_compneg.support.errors import QueryError

_MARK = re.compile(r"<mark>(.*?)</mark>", re.DOTALL)

TEMPLATES: dict[str, Callable[[tuple[Atom, ...]], Expression]] = {
    "_": lambda atoms: atoms[0],
    "_ or _": Union,
    "_ or _ or _": Union,
    "_ that are also _": Intersection,
    "_ that are also both _ and _": Intersection,
    "_ that are also _ but not _": lambda atoms: Difference(Intersection(atoms[:2]), atoms[2]),
    "_ that are not _": lambda atoms: Difference(*atoms),
}
"""Maps each template, with ``_`` for each atom, to the function that makes its expression."""


def from_marks(original_query: str) -> Expression:
    """Reads a query whose atoms stand between ``<mark>`` and ``</mark>``.

    Raises:
        QueryError: The query has no marks, an atom is blank, or the words match no template.

    >>> from_marks("<mark>birds</mark> that are not <mark>parrots</mark>")
    Difference(left=Atom(text='birds'), right=Atom(text='parrots'))
    """
    texts = _MARK.findall(original_query)
    wording = " ".join(_MARK.sub("_", original_query).split())
    if wording not in TEMPLATES or wording.count("_") != len(texts):
        known = ", ".join(map(repr, TEMPLATES))
        expected = f"expected one of {known}; each _ is <mark>...</mark>"
        raise QueryError(f"unknown wording {wording!r} in {original_query!r}; {expected}")
    return TEMPLATES[wording](tuple(map(Atom, texts)))


def verbalise(expression: Expression) -> str:
    """Writes an expression in the words of QUEST's templates, to encode it as a whole or to show it to people.

    Expressions of the seven shapes are written exactly as in QUEST. For other shapes:

    - a union has any number of operands: ``a or b or c or d``;
    - an intersection of four or more is ``a that are also b, c and d``;
    - all excluded parts, in a chain or as a union, become one list: ``a that are not b or c``;
    - an operand that is itself compound stands in parentheses: ``a or (b that are not c)``.

    Raises:
        QueryError: The expression contains NOT! or AND!, which the templates cannot express.

    >>> verbalise(Difference(Intersection((Atom("birds"), Atom("pets"))), Atom("parrots")))
    'birds that are also pets but not parrots'
    """
    match expression:
        case Atom(text):
            return text
        case Union(operands):
            return " or ".join(map(_operand, operands))
        case Intersection(strict=True):
            raise QueryError("AND! cannot be encoded as text, as vanilla does; choose other operators, or AND")
        case Intersection((first, *others)):
            return f"{_operand(first)} that are also {_listed(others)}"
        case Difference():
            kept, excluded = _difference(expression)
            without = " or ".join(map(_operand, excluded))
            if isinstance(kept, Intersection):
                return f"{verbalise(kept)} but not {without}"
            return f"{_operand(kept)} that are not {without}"
        case Exclusion():
            raise QueryError("NOT! cannot be encoded as text, as vanilla does; choose other operators")
    raise AssertionError(f"no expression: {expression!r}")


def _operand(expression: Expression) -> str:
    text = verbalise(expression)
    return text if isinstance(expression, Atom) else f"({text})"


def _listed(operands: list[Expression]) -> str:
    *first, last = map(_operand, operands)
    if not first:
        return last
    return f"both {first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)} and {last}"


def _difference(expression: Expression) -> tuple[Expression, list[Expression]]:
    """The left end of a chain of differences, and all parts that the chain excludes, in order."""
    excluded: list[Expression] = []
    while isinstance(expression, Difference):
        right = expression.right
        excluded = [*(right.operands if isinstance(right, Union) else [right]), *excluded]
        expression = expression.left
    return expression, excluded
