"""Error messages of the query language: the fault of a text and its position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyserini_compneg.support.errors import QueryError

if TYPE_CHECKING:
    from lark import Token

WINDOW = 72

NOTHING_BEFORE = "NOT! has no positive part before it; put one there, as in: birds NOT! parrots"

AS_WORDS = "for plain words, use quotes or --read plain (read=plain)"
"""What to do about a text that was not meant as an expression."""


@dataclass(eq=False)
class Fault(Exception):
    """A fault in the text and its position in characters. It never leaves this package."""

    message: str
    position: int


def position_of(token: Token) -> int:
    """The position where a token starts. A token that lark read from a text always has a position."""
    return token.start_pos or 0


@contextmanager
def blamed_on(token: Token) -> Iterator[None]:
    """Turns an error of the tree, which has no position, into a fault at the token."""
    try:
        yield
    except QueryError as error:
        raise Fault(error.message, position_of(token)) from None


def located(fault: Fault, text: str) -> QueryError:
    """The error to raise. It has the message, the text around the fault on one line, and a caret under the fault."""
    start = max(0, min(fault.position - WINDOW // 2, len(text) - WINDOW))
    end = start + WINDOW
    before = "..." if start else ""
    after = "..." if end < len(text) else ""
    shown = "".join(char if char.isprintable() else " " for char in text[start:end])
    caret = " " * (len(before) + fault.position - start) + "^"
    return QueryError(
        fault.message, remedy=AS_WORDS if text.strip() else "", below=f"  {before}{shown}{after}\n  {caret}"
    )


def unexpected(token: Token, before: Token | None) -> Fault:
    """Reports a token that the grammar does not allow behind the token before it: an operand is empty."""
    if token.type == "EXCEPT" and (before is None or before.type in ("_LPAR", "OR")):
        return Fault(NOTHING_BEFORE, position_of(token))
    if token.type == "_RPAR":
        what = "the parentheses are empty"
    else:
        what = f"unexpected {_name(token)} {f'after {_name(before)}' if before else 'at the start'}"
    return Fault(f'{what}; expected a phrase or "("', position_of(token))


def unclosed_group(opening: Token) -> Fault:
    return Fault('"(" is not closed; expected ")"', position_of(opening))


def empty_quotes(token: Token) -> Fault:
    return Fault("the quotes are empty; expected a phrase between them", position_of(token))


def is_glued(left: Token, right: Token) -> bool:
    return left.end_pos == right.start_pos


def missing_operator(left: Token, right: Token) -> Fault:
    """Reports words and a group, or two groups, without an operator between them."""
    this = '"("' if right.type == "_LPAR" else "this phrase"
    remedy = "expected AND, OR or NOT; words join only alternatives of plain words, as in: (French OR Italian) comedies"
    if is_glued(left, right) and left.endswith(":"):
        remedy = f"{left} searches no field; conditions are NOT! FIELD=VALUE, and --filter FIELD=VALUE"
    elif is_glued(left, right) and left.endswith("="):
        remedy = f"a condition has one value; write NOT! {left}VALUE for each"
    elif is_glued(left, right):
        remedy = "expected AND, OR or NOT, or a blank between words and the alternatives that they join"
    return Fault(f"an operator is missing before {this}; {remedy}", position_of(right))


def _name(token: Token) -> str:
    return f'"{token}"' if token.type in ("_LPAR", "_RPAR") else str(token)
