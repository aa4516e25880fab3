"""Decides which tokens of a text are words: operators that join nothing, and brackets that hold no operator.

A text is an expression if an operator stands between two operands, or if words stand beside a group of alternatives. In
an expression, brackets group if they hold an operator or are a whole operand. All other brackets are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, TypeAlias

from pyserini_compneg.expression.faults import is_glued, missing_operator, unclosed_group

if TYPE_CHECKING:
    from lark import Token

OPERATORS = frozenset(("AND", "STRICT", "OR", "EXCEPT", "NOT"))

CONDITION = re.compile(r"[^\W\d][\w.-]*=")


@dataclass(eq=False, slots=True)
class _Level:
    """What stands between two brackets, or the whole text. Tokens are given by their places in the text."""

    opening: int
    closing: int
    segments: list[list[_Item]]
    """The operands, each with the words and brackets that it is made of."""

    is_joined: bool
    """Whether an operator stands between two operands here."""

    has_operator: bool
    """Whether an operator stands between two operands here or in brackets inside."""

    is_plain: bool
    """Whether this is a phrase, or alternatives of phrases that only OR joins."""


_Item: TypeAlias = "int | _Level"


def settled(tokens: Sequence[Token]) -> list[Token] | None:
    """The tokens of an expression, with the type WORD for all that are words; None if the text is no expression."""
    levels = _Levels(tokens)
    text, unclosed = levels.read()
    if not _is_expression(text, tokens):
        return None
    if unclosed:
        raise unclosed_group(tokens[unclosed[-1]])
    levels.settle(text)
    return [
        token.new_borrow_pos("WORD", " ".join(token.split()), token) if place in levels.words else token
        for place, token in enumerate(tokens)
    ]


def _is_expression(level: _Level, tokens: Sequence[Token]) -> bool:
    """Whether a text is an expression, which may be in brackets as a whole."""
    while level.has_operator and not level.is_joined:
        (segment,) = level.segments
        if len(segment) > 1 or isinstance(segment[0], int):
            return _joins(segment, tokens)
        level = segment[0]
    return level.is_joined


class _Levels:
    """The brackets of a text. No method recurses, because brackets may nest thousands of levels deep."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.words: set[int] = set()
        """The places of tokens that are words, whatever their types are."""

    def read(self) -> tuple[_Level, list[int]]:
        """The whole text, and the places of brackets that are not closed, which count as words here."""
        frames: list[tuple[int, list[_Item]]] = [(-1, [])]
        for place, token in enumerate(self._tokens):
            if token.type == "_LPAR":
                frames.append((place, []))
            elif token.type != "_RPAR":
                frames[-1][1].append(place)
            elif len(frames) > 1:
                opening, items = frames.pop()
                frames[-1][1].append(self._level(opening, place, items))
            else:
                self.words.add(place)
                frames[-1][1].append(place)
        (_, whole), *unclosed = frames
        for opening, items in unclosed:
            whole += [opening, *items]
        return self._level(-1, len(self._tokens), whole), [opening for opening, _ in unclosed]

    def settle(self, text: _Level) -> None:
        """Finds the brackets of an expression that are words."""
        groups = [text]
        while groups:
            for segment in groups.pop().segments:
                inner = [item for item in segment if isinstance(item, _Level)]
                if len(segment) > 1:
                    self._check_joins(segment)
                    for level in inner:
                        if not level.has_operator:
                            self.words.update(range(level.opening, level.closing + 1))
                groups += (level for level in inner if level.has_operator or len(segment) == 1)

    def _level(self, opening: int, closing: int, items: list[_Item]) -> _Level:
        """A level of its words, operators and inner brackets. Operators that join nothing become words."""
        self.words.update(item for item in self._idle_operators(items) if isinstance(item, int))
        segments: list[list[_Item]] = []
        runs: list[list[str]] = []
        for is_operator, run in groupby(items, self._is_operator):
            if is_operator:
                runs.append(self._types(run))
            else:
                segments.append(list(run))
        is_joined = len(segments) > 1
        return _Level(
            opening,
            closing,
            segments,
            is_joined,
            has_operator=is_joined or any(map(_is_group, chain.from_iterable(segments))),
            is_plain=bool(segments)
            and all(run == ["OR"] for run in runs)
            and all(_joins(segment, self._tokens) for segment in segments),
        )

    def _idle_operators(self, items: list[_Item]) -> list[_Item]:
        """The operators that join nothing: all behind the last operand, and those before the first that may not lead.

        NOT may lead. So may NOT!, for which the parser has a message of its own.
        """
        operands = [at for at, item in enumerate(items) if not self._is_operator(item)]
        if not operands:
            return items
        leading, trailing = items[: operands[0]], items[operands[-1] + 1 :]
        types = self._types(leading)
        may_lead = {*types} == {"NOT"} or "EXCEPT" in types
        return trailing if may_lead else leading + trailing

    def _types(self, operators: Iterable[_Item]) -> list[str]:
        return [self._tokens[item].type for item in operators if isinstance(item, int)]

    def _is_operator(self, item: _Item) -> bool:
        return isinstance(item, int) and item not in self.words and self._tokens[item].type in OPERATORS

    def _check_joins(self, segment: Sequence[_Item]) -> None:
        if any(_is_group(item) for item in segment) and not _joins(segment, self._tokens):
            beside = [pair for pair in pairwise(segment) if any(map(_is_group, pair))]
            faulty = (pair for pair in beside if not _is_joined(pair, self._tokens))
            left, right = next(faulty, beside[0])
            raise missing_operator(self._tokens[_last(left)], self._tokens[_first(right)])


def _is_group(item: _Item) -> bool:
    return isinstance(item, _Level) and item.has_operator


def _joins(segment: Sequence[_Item], tokens: Sequence[Token]) -> bool:
    """Whether an operand is a phrase, or words and alternatives of phrases with blanks between them."""
    if len(segment) == 1 and isinstance(segment[0], _Level):
        return segment[0].is_plain
    if not any(map(_is_group, segment)):
        return not _joins_no_words(segment[0], tokens)
    return all(_is_joined(pair, tokens) for pair in pairwise(segment))


def _is_joined(pair: tuple[_Item, _Item], tokens: Sequence[Token]) -> bool:
    left, right = pair
    if any(_joins_no_words(item, tokens) for item in pair):
        return False
    is_beside_group = _is_group(left) or _is_group(right)
    return not (is_beside_group and is_glued(tokens[_last(left)], tokens[_first(right)]))


def _joins_no_words(item: _Item, tokens: Sequence[Token]) -> bool:
    """Whether words cannot join a neighbour: it is a condition on a field, or a group not of alternative phrases."""
    if isinstance(item, int):
        return _is_condition(tokens[item])
    return item.has_operator and not item.is_plain


def _is_condition(token: Token) -> bool:
    return token.type == "WORD" and CONDITION.match(token) is not None


def _first(item: _Item) -> int:
    return item if isinstance(item, int) else item.opening


def _last(item: _Item) -> int:
    return item if isinstance(item, int) else item.closing
