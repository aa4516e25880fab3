r"""The query language: ``birds of Colombia AND birds of Venezuela NOT parrots``.

Operators are whole words in capitals, or signs: AND ∩, OR ∪, NOT \. NOT and AND have the same precedence, bind more
tightly than OR, and are applied from left to right; parentheses group. AND! finds only documents that match all its
operands. NOT! removes documents that match; directly after NOT!, ``genre=Comedy`` is a condition on a field. All other
input is text: a run of words and quoted parts is one phrase and becomes one atom, whose words are joined by single
blanks. Quotes (") protect operators, parentheses and blanks. Words join each of the alternatives in a neighbouring
group, so ``(French OR Italian) comedies`` is ``French comedies OR Italian comedies``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, pairwise, product, takewhile
from operator import mul
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyserini_compneg.expression import normalise
from pyserini_compneg.expression.faults import (
    Fault,
    blamed_on,
    check_words,
    is_glued,
    located,
    missing_operator,
    position_of,
    unclosed_quote,
    unexpected,
)
from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.expression.normalise import Region
from pyserini_compneg.expression.tree import Atom, Difference, Exclusion, Expression, Intersection, Union

if TYPE_CHECKING:
    from lark import Lark, Token

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[()"∩∪\\]|(?<!\S)(?:AND!?|OR|NOT!?)(?!\S)')
_COMPOUND = (Union, Intersection, Difference, Exclusion)
MOST_PHRASES = 1000
"""The limit on phrases that groups and neighbouring words make."""

_MOST_CHARACTERS = 20_000
"""The limit on characters of the alternatives in groups. Without it, nested groups repeat their words at each level."""

_CONDITION = re.compile(r"[^\W\d][\w.-]*=")


def parse(text: str) -> Expression:
    """Parses an expression.

    NOT may stand anywhere if the whole expression has a positive part. Set algebra moves complements up until they are
    differences, so ``a AND (b OR NOT c)`` becomes ``a AND b OR a NOT c``.

    Args:
        text: The query. Adjacent operators of the same kind become one node; parentheses are kept as nesting.

    Raises:
        QueryError: The text is not an expression, has no positive part or is nested too deep. The message ends with
            the text and a caret under the fault.

    >>> parse("birds of Colombia AND birds of Venezuela")
    Intersection(operands=(Atom(text='birds of Colombia'), Atom(text='birds of Venezuela')))
    >>> parse("birds of (Colombia OR Venezuela)") == parse("birds of Colombia OR birds of Venezuela")
    True
    >>> parse("birds NOT parrots") == parse("birds AND NOT parrots") == Difference(Atom("birds"), Atom("parrots"))
    True
    """
    try:
        return _expression(text)
    except Fault as fault:
        raise located(fault, text) from None


def format_expression(expression: Expression) -> str:
    r"""Writes an expression as text that ``parse`` turns back into it, with as few parentheses and quotes as possible.

    >>> format_expression(Difference(Union((Atom("birds"), Atom("bats"))), Atom("in AND out")))
    '(birds OR bats) NOT "in AND out"'
    """
    match expression:
        case Atom(text):
            return _format_atom(text)
        case Union(operands):
            return " OR ".join(_format_operand(operand, Union) for operand in operands)
        case Intersection((first, *others), strict=strict):
            # A leading difference needs no parentheses, nor does AND before AND!: they are read from left to right.
            is_alike = isinstance(first, Intersection) and first.strict == strict
            parts = [_format_operand(first, Union, *([Intersection] if is_alike else []))]
            parts += [_format_operand(other, *_COMPOUND) for other in others]
            return (" AND! " if strict else " AND ").join(parts)
        case Difference(left, right):
            return f"{_format_operand(left, Union)} NOT {_format_operand(right, *_COMPOUND)}"
        case Exclusion(left, right):
            return f"{_format_operand(left, Union)} NOT! {_format_barred(right)}"
    raise AssertionError(f"no expression: {expression!r}")


def _format_barred(operand: Expression | Filter) -> str:
    if not isinstance(operand, Filter):
        text = _format_operand(operand, *_COMPOUND)
        return f'"{text}"' if isinstance(operand, Atom) and _CONDITION.match(text) else text
    ((field, (value,)),) = operand.fields.items()
    return f"{field}={_format_atom(value)}"


def _format_operand(operand: Expression, *bracketed: type[Expression]) -> str:
    text = format_expression(operand)
    return f"({text})" if isinstance(operand, bracketed) else text


def _format_atom(text: str) -> str:
    if text == " ".join(text.split()) and not _NEEDS_QUOTES.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _union(*children: Region | Token) -> Region:
    operands, operators = cast("tuple[Region, ...]", children[::2]), cast("tuple[Token, ...]", children[1::2])
    with blamed_on(operators[0]):
        union = normalise.union(operands)
    are_plain = all(operand.phrases for operand in operands)
    return replace(union, phrases=tuple(chain.from_iterable(one.phrases for one in operands))) if are_plain else union


def _chain(*children: Region | Token) -> Region:
    """Applies a chain of AND and NOT from left to right. AND collects operands; NOT applies to everything before it.

    AND! collects its own operands. Its first operand is everything before it.
    """
    operands, operators = cast("tuple[Region, ...]", children[::2]), cast("tuple[Token, ...]", children[1::2])
    gathered, required = [operands[0]], cast("list[Region]", [])
    for operator, operand, following in zip(operators, operands[1:], (*operators[1:], None), strict=True):
        with blamed_on(operator):
            if operator.type == "STRICT":
                required = required or [normalise.intersection(gathered)]
                required.append(operand)
                if following is None or following.type != "STRICT":
                    gathered, required = [normalise.strict_intersection(required, position_of(operator))], []
                continue
            if operator.type == "EXCEPT":
                left = normalise.intersection(gathered)
                gathered = [normalise.exclusion(left, operand, position_of(operator))]
                continue
            if operator.type == "NOT":
                operand = normalise.complement(operand, position_of(operator))
            gathered.append(operand)
            if operand.expression is None:
                gathered = [normalise.intersection(gathered)]
    with blamed_on(operators[-1]):
        return normalise.intersection(gathered)


def _complement(operator: Token, operand: Region) -> Region:
    with blamed_on(operator):
        return normalise.complement(operand, position_of(operator))


class _Group(NamedTuple):
    opening: Token
    region: Region
    closing: Token


def _sequence(*parts: Token | _Group) -> Region:
    """Reads a phrase, a group, or words that join each of the alternatives in neighbouring groups."""
    groups = [part for part in parts if isinstance(part, _Group)]
    if not groups:
        return _atom(*cast("tuple[Token, ...]", parts))
    if len(parts) == 1:
        return groups[0].region
    _check_joins(parts)
    counts = accumulate((len(group.region.phrases) for group in groups), mul)
    if any(count > MOST_PHRASES for count in counts):  # the loop stops here: the product may have thousands of digits
        said = f"groups beside each other make more than {MOST_PHRASES:,} phrases"
        raise Fault(f"{said}; write AND between them", position_of(groups[0].opening))
    characters = sum(len(phrase) for group in groups for phrase in group.region.phrases)
    if characters > _MOST_CHARACTERS:
        said = f"groups beside each other hold more than {_MOST_CHARACTERS:,} characters"
        raise Fault(f"{said}; write AND between them", position_of(groups[0].opening))
    choices = [part.region.phrases if isinstance(part, _Group) else (str(part),) for part in parts]
    phrases = tuple(map(" ".join, product(*choices)))
    return Region(Union(tuple(map(Atom, phrases))), phrases=phrases)


def _check_joins(parts: Sequence[Token | _Group]) -> None:
    """Checks that all parts are plain words or groups of plain alternatives, with blanks between them."""
    beside = [pair for pair in pairwise(parts) if any(isinstance(part, _Group) for part in pair)]
    for pair in beside:
        check_words(part for part in pair if not isinstance(part, _Group))
    faulty = [pair for pair in beside if not all(map(_joins, pair)) or is_glued(_last(pair[0]), _first(pair[1]))]
    if faulty or not all(map(_joins, parts)):
        left, right = (faulty or beside)[0]
        is_single = any(isinstance(part, _Group) and isinstance(part.region.inside, Atom) for part in (left, right))
        raise missing_operator(_last(left), _first(right), is_single)


def _joins(part: Token | _Group) -> bool:
    if isinstance(part, _Group):
        return len(part.region.phrases) > 1
    return part.type == "WORD" and not _CONDITION.match(part)


def _first(part: Token | _Group) -> Token:
    return part.opening if isinstance(part, _Group) else part


def _last(part: Token | _Group) -> Token:
    return part.closing if isinstance(part, _Group) else part


def _atom(*parts: Token) -> Region:
    atom = Atom(" ".join(map(_unquoted, parts)))
    if parts[0].type == "QUOTED" or not _CONDITION.match(parts[0]):
        is_plain = all(part.type == "WORD" for part in parts)
        return Region(atom, phrases=(atom.text,) if is_plain else ())
    field, _, value = str(parts[0]).partition("=")
    value = " ".join(filter(None, (value, *map(_unquoted, parts[1:]))))
    return Region(atom, condition=(field, value))


def _unquoted(token: Token) -> str:
    if token.type == "WORD":
        return str(token)
    for escape in _ESCAPE.finditer(token):
        if escape[1] not in '"\\':
            message = 'a backslash inside quotes must stand before " or \\; write \\\\ for the backslash itself'
            raise Fault(message, position_of(token) + escape.start())
    text = _ESCAPE.sub(r"\1", token[1:-1]).strip()
    if not text:
        raise Fault("the quotes are empty; expected a phrase between them", position_of(token))
    return text


_RULES: Mapping[str, Callable[..., object]] = {
    "union": _union,
    "chain": _chain,
    "complement": _complement,
    "sequence": _sequence,
    "group": _Group,
}


@cache
def _parser() -> Lark:
    """The parser. Rules run when they are complete, so no parse tree is built and deep input needs no recursion."""
    from lark import Lark  # takes 0.1 s, so importing this package does not import lark

    callbacks = {rule: (lambda children, call=call: call(*children)) for rule, call in _RULES.items()}
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", transformer=cast("Any", SimpleNamespace(**callbacks)))


def _expression(text: str) -> Expression:
    from lark import UnexpectedCharacters, UnexpectedToken

    parser = _parser()
    try:
        region = cast("Region", parser.parse(text))
    except UnexpectedCharacters as error:  # the terminals cover all characters except an unpaired quote
        raise unclosed_quote(error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        token = error.token
        ends = token.type == "$END"
        before = list(takewhile(lambda other: ends or position_of(other) < position_of(token), parser.lex(text)))
        raise unexpected(token, before, text) from None
    if region.expression is None:
        raise Fault(normalise.NO_POSITIVE_PART, region.origin)
    return region.expression
