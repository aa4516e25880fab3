r"""The query language: ``birds of Colombia AND birds of Venezuela NOT parrots``.

Operators are whole words in capitals, or signs: AND ∩, OR ∪, NOT \. NOT and AND have the same precedence, bind more
tightly than OR, and are applied from left to right; parentheses group. AND! finds only documents that match all its
operands. NOT! removes documents that match; directly after NOT!, ``genre=Comedy`` is a condition on a field. Words join
each of the alternatives in a neighbouring group, so ``(French OR Italian) comedies`` is ``French comedies OR Italian
comedies``. Quotes (") protect operators, parentheses and blanks.

A text is an expression only if an operator stands between two operands. Any other text is one atom: in ``NOT gate``,
``IL-6 (interleukin 6)`` and ``5" pipe``, all characters are text. :mod:`.operands` decides which tokens are words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, groupby, product
from operator import mul
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyserini_compneg.expression import normalise
from pyserini_compneg.expression.faults import (
    Fault,
    blamed_on,
    empty_quotes,
    located,
    position_of,
    unexpected,
)
from pyserini_compneg.expression.filters import Filter
from pyserini_compneg.expression.normalise import Region
from pyserini_compneg.expression.operands import CONDITION, OPERATORS, settled
from pyserini_compneg.expression.tree import Atom, Difference, Exclusion, Expression, Intersection, Union
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from lark import Lark, Token

_ESCAPE = re.compile(r'\\(["\\])')
_OPERATOR = re.compile(r'(?<![^\s()"∩∪])(?:AND!?|OR|NOT!?)(?![^\s()"∩∪])|[∩∪]|(?<![^\s()∩∪])\\(?![^\s()∩∪])')
"""Finds all operators, and some that are words."""

_LATEX = re.compile("[${}]")
r"""A text with one of these has ``\`` as a word: tokenizers of topics make ``\ frac { 1 } { 2 }`` of formulas."""

_SIGNS = ("AND", "OR", "NOT", "∩", "∪", "\\")
"""Each match has one of them. To find none in a text takes a twentieth of the time."""

_IN_QUOTES = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_NEEDS_QUOTES = re.compile(rf'[()"\\]|{_OPERATOR.pattern}')
_COMPOUND = (Union, Intersection, Difference, Exclusion)
SEARCHED_AS_WORDS = (
    "operators that do not join two parts or have no positive part, and brackets and quotes without their partners, "
    "are searched as words: write operators between two parts, as in: birds NOT parrots"
)
"""What to say of a text with :func:`signs_as_words`."""

MOST_PHRASES = 1000
"""The limit on phrases that groups and neighbouring words make."""

_MOST_CHARACTERS = 20_000
"""The limit on characters of the alternatives in groups. Without it, nested groups repeat their words at each level."""


def parse(text: str) -> Expression:
    """Parses a text: as an expression if an operator stands between two operands, otherwise as one atom.

    The atom of such a plain text has exactly this text, and ranks documents as ``Atom(text)`` does. Only quotes around
    the whole text, or around words that would be operators, are left out.

    NOT may stand anywhere if the whole expression has a positive part; without one it is plain text. Set algebra moves
    complements up until they are differences, so ``a AND (b OR NOT c)`` becomes ``a AND b OR a NOT c``.

    Args:
        text: The query. Adjacent operators of the same kind become one node; parentheses are kept as nesting.

    Raises:
        ArgumentError: The value is not a text.
        QueryError: The text is blank; or it is an expression with an empty operand, a group that is not closed or that
            stands beside words that it does not join, AND! or NOT! without a positive part, or too many or too deep
            parts. The message ends with the text and a caret under the fault.

    >>> parse("birds of Colombia AND birds of Venezuela")
    Intersection(operands=(Atom(text='birds of Colombia'), Atom(text='birds of Venezuela')))
    >>> parse("birds of (Colombia OR Venezuela)") == parse("birds of Colombia OR birds of Venezuela")
    True
    >>> parse("birds NOT parrots") == parse("birds AND NOT parrots") == Difference(Atom("birds"), Atom("parrots"))
    True
    >>> parse("IL-6 (interleukin 6)"), parse("NOT gate")
    (Atom(text='IL-6 (interleukin 6)'), Atom(text='NOT gate'))
    >>> parse("TO BE OR NOT TO BE")
    Atom(text='TO BE OR NOT TO BE')
    """
    if not isinstance(text, str):
        raise ArgumentError(f"an expression must be a text, got {shown(text)}")
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
            is_plain = not _OPERATOR.search(text) and not _IN_QUOTES.fullmatch(text)
            return text if is_plain else _format_atom(text)
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
        return f'"{text}"' if isinstance(operand, Atom) and CONDITION.match(text) else text
    ((field, (value,)),) = operand.fields.items()
    return f"{field}={_format_atom(value)}"


def _format_operand(operand: Expression, *bracketed: type[Expression]) -> str:
    if isinstance(operand, Atom):
        return _format_atom(operand.text)
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
        return _atom(cast("tuple[Token, ...]", parts))
    if len(parts) == 1:
        return groups[0].region
    counts = accumulate((len(group.region.phrases) for group in groups), mul)
    if any(count > MOST_PHRASES for count in counts):  # the loop stops here: the product may have thousands of digits
        said = f"groups beside each other make more than {MOST_PHRASES:,} phrases"
        raise Fault(f"{said}; write AND between them", position_of(groups[0].opening))
    characters = sum(len(phrase) for group in groups for phrase in group.region.phrases)
    if characters > _MOST_CHARACTERS:
        said = f"groups beside each other hold more than {_MOST_CHARACTERS:,} characters"
        raise Fault(f"{said}; write AND between them", position_of(groups[0].opening))
    choices: list[tuple[str, ...]] = []
    for kind, run in groupby(parts, type):
        if kind is _Group:
            choices += (group.region.phrases for group in cast("Iterator[_Group]", run))
        else:
            choices.append((_joined(cast("Iterator[Token]", run)),))
    phrases = tuple(map(" ".join, product(*choices)))
    return Region(Union(tuple(map(Atom, phrases))), phrases=phrases)


def _atom(parts: Sequence[Token]) -> Region:
    text = _joined(parts)
    if not text.strip():
        raise empty_quotes(parts[0])
    if parts[0].type == "WORD" and CONDITION.match(parts[0]):
        field, _, value = text.partition("=")
        return Region(Atom(text), condition=(field, value.strip()))
    atom = Atom(text)
    return Region(atom, phrases=(atom.text,))


def _joined(words: Iterable[Token]) -> str:
    """The text of words and quoted parts, without the quotes, and with single blanks between them."""
    text, end = "", None
    for word in words:
        part = _unquoted(word) if word.type == "QUOTED" else str(word)
        text += f" {part}" if text and part and word.start_pos != end else part
        end = word.end_pos
    return text


def _unquoted(quoted: str) -> str:
    r"""The text between quotes. A backslash that stands for itself may be single or double."""
    return _ESCAPE.sub(r"\1", quoted[1:-1]).strip()


def _plain(text: str, tokens: Sequence[Token]) -> str:
    """The text of the atom of a text that is no expression. Quotes that protect nothing are text."""
    text = text.strip()
    if _IN_QUOTES.fullmatch(text) and (inside := _unquoted(text)):
        return inside
    is_protected = any(token.type == "QUOTED" and _OPERATOR.search(token, 1, len(token) - 1) for token in tokens)
    return _joined(tokens) if is_protected else text


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
    if not text.strip():
        raise Fault("the text is blank; expected words", 0)
    tokens = _tokens(text)
    return _parsed(tokens) or Atom(_plain(text, tokens))


def _parsed(lexed: Sequence[Token]) -> Expression | None:
    """The expression of the tokens of a text; None for plain text, and if no part of the expression is positive."""
    from lark import UnexpectedToken

    if (tokens := settled(lexed)) is None:
        return None
    parser: Any = _parser().parse_interactive("")
    before = None
    for token in tokens:
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            raise unexpected(token, before) from None
        before = token
    return cast("Region", parser.feed_eof(before)).expression


def _tokens(text: str) -> list[Token]:
    """The tokens of a text; none of a text without operators, which is plain."""
    if not any(sign in text for sign in _SIGNS) or not _OPERATOR.search(text):
        return []
    parser: Any = _parser().parse_interactive(text)
    tokens = list(parser.lexer_thread.lex(parser.parser_state))
    if _LATEX.search(text):
        tokens = [token.new_borrow_pos("WORD", token, token) if token == "\\" else token for token in tokens]
    return tokens


def signs_as_words(text: str) -> list[str]:
    """What ``parse`` takes as words although it looks like a part of the syntax.

    These are the operators that do not join two operands, those of an expression without a positive part, and the
    brackets and quotes of an expression that have no partner.

    >>> signs_as_words("NOT gate"), signs_as_words("gates NOT doors :)"), signs_as_words('"AND gate"')
    (['NOT'], [')'], [])
    >>> signs_as_words("TO BE OR NOT TO BE")
    ['OR', 'NOT']
    """
    tokens = _tokens(text)
    try:
        kept = settled(tokens) if _parsed(tokens) else None
    except Fault:
        return []
    if kept is None:
        return [str(token) for token in tokens if token.type in OPERATORS]
    open_brackets, signs = 0, list[str]()
    for token, other in zip(tokens, kept, strict=True):
        if other.type != "WORD":
            continue
        if token.type == "_LPAR":
            open_brackets += 1
        elif token.type == "_RPAR" and open_brackets:
            open_brackets -= 1
        elif token.type in OPERATORS or token.type == "_RPAR" or token.startswith('"'):
            signs.append(str(token))
    return signs
