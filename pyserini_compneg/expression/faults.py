"""Error messages of the query language: the fault of a text and its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyserini_compneg.support.errors import QueryError

if TYPE_CHECKING:
    from lark import Token

WINDOW = 72

NOTHING_BEFORE = "NOT! has no positive part before it; put one there, as in: birds NOT! parrots"

_MEANT = {
    **dict.fromkeys(("and", "&", "&&", "+"), "AND"),
    **dict.fromkeys(("or", "|", "||", "and/or", "or/and"), "OR"),
    **dict.fromkeys(("not", "-", "!", "but", "without", "except", "minus", "andnot"), "NOT"),
}
"""The operators that a user probably meant by a word beside a group."""


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
    return QueryError(fault.message, below=f"  {before}{shown}{after}\n  {caret}")


def unclosed_quote(position: int) -> Fault:
    return Fault('a quote is not closed; expected another " (write \\" for a quote inside quotes)', position)


def unexpected(token: Token, before: Sequence[Token], text: str) -> Fault:
    """Reports a token that the grammar does not allow in its place."""
    ends = token.type == "$END"
    position = len(text.rstrip()) if ends else position_of(token)
    if not before or before[-1].type not in ("WORD", "QUOTED", "_RPAR"):
        return Fault(_phrase_missing(token, before), position)
    if ends:
        return Fault('"(" is not closed; expected ")"', _open_parenthesis(before))
    return Fault('")" closes nothing; expected AND, OR, NOT or the end of the text', position)


def is_glued(left: Token, right: Token) -> bool:
    return left.end_pos == right.start_pos


def missing_operator(left: Token, right: Token, is_single: bool) -> Fault:
    """Reports words and a group, or two groups, without an operator between them."""
    this = '"("' if right.type == "_LPAR" else "this phrase"
    remedy = "expected AND, OR or NOT; words join only alternatives of plain words, as in: (French OR Italian) comedies"
    if is_glued(left, right) and left.endswith(":"):
        remedy = f"{left} searches no field; conditions are NOT! FIELD=VALUE, and --filter FIELD=VALUE"
    elif is_glued(left, right) and left.endswith("="):
        remedy = f"a condition has one value; write NOT! {left}VALUE for each"
    elif is_single:
        remedy = "expected AND, OR or NOT, or quotes around a phrase that holds parentheses"
    elif is_glued(left, right):
        remedy = "expected AND, OR or NOT, or a blank between words and the alternatives that they join"
    return Fault(f"an operator is missing before {this}; {remedy}", position_of(right))


def check_words(words: Iterable[Token]) -> None:
    """Refuses words beside a group that are probably meant as operators."""
    for word in words:
        if meant := _MEANT.get(word.lower()):
            raise Fault(f'"{word}" is not an operator; write {meant}', position_of(word))


def _phrase_missing(token: Token, before: Sequence[Token]) -> str:
    if token.type == "$END":
        what = f"the expression ends after {_name(before[-1])}" if before else "the expression is empty"
    elif token.type == "_RPAR" and before and before[-1].type == "_LPAR":
        what = "the parentheses are empty"
    elif token.type == "EXCEPT" and (not before or before[-1].type in ("_LPAR", "OR")):
        return NOTHING_BEFORE
    else:
        where = f"after {_name(before[-1])}" if before else "at the start"
        what = f"unexpected {_name(token)} {where}"
    return f'{what}; expected a phrase or "("'


def _name(token: Token) -> str:
    return f'"{token}"' if token.type in ("_LPAR", "_RPAR") else str(token)


def _open_parenthesis(tokens: Sequence[Token]) -> int:
    """The position of the innermost parenthesis that is still open."""
    open_positions: list[int] = []
    for token in tokens:
        if token.type == "_LPAR":
            open_positions.append(position_of(token))
        elif token.type == "_RPAR":
            open_positions.pop()
    return open_positions[-1]
