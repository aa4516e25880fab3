"""The Boolean queries of the CISI collection, file ``CISI.BLN``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from pyserini_compneg.expression import normalise
from pyserini_compneg.expression.faults import Fault, blamed_on, position_of
from pyserini_compneg.expression.normalise import Region
from pyserini_compneg.expression.syntax import complement, load_grammar
from pyserini_compneg.expression.tree import Atom, Expression
from pyserini_compneg.support.errors import QueryError

if TYPE_CHECKING:
    from lark import Lark, Token, UnexpectedInput


def parse_cisi(text: str, source: str = "CISI.BLN") -> dict[str, Expression]:
    """Reads all queries of the file.

    Args:
        text: The content of the file.
        source: Its path, for the message.

    Returns:
        Expressions by query id without its ``#q``, as the judgements of CISI name them, in the order of the file.
        A ``#not`` inside an ``#or`` is moved up by set algebra, as ``parse`` does.

    Raises:
        QueryError: Text outside the grammar, an id given twice, or a query without a positive part. The message
            holds the line.

    >>> parse_cisi("#q1= #and ('birds', #not ('parrots'));")
    {'1': Difference(left=Atom(text='birds'), right=Atom(text='parrots'))}
    """
    from lark import UnexpectedInput

    try:
        return cast("dict[str, Expression]", _parser().parse(text))
    except Fault as fault:
        message, position = fault.message, fault.position
    except UnexpectedInput as error:
        message, position = _unexpected(error, text)
    line = text.count("\n", 0, position) + 1
    raise QueryError(f"{source}, line {line}: {message}")


def _unexpected(error: UnexpectedInput, text: str) -> tuple[str, int]:
    from lark import UnexpectedToken

    expected = "expected statements such as #q1= #and ('titles', #not ('articles'));"
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return f"unexpected end of the file; {expected}", len(text.rstrip())
    position = error.pos_in_stream or 0
    return f"unexpected {text[position:].split(None, 1)[0][:20]!r}; {expected}", position


def _queries(*statements: tuple[Token, Expression] | None) -> dict[str, Expression]:
    queries: dict[str, Expression] = {}
    for name, expression in filter(None, statements):
        identifier = name.removeprefix("#q")
        if identifier in queries:
            raise Fault(f"query {name} is given twice; an id stands for one query", position_of(name))
        queries[identifier] = expression
    return queries


def _setting(*_: Token) -> None:
    """Settings of the retrieval system that the file was made for mean nothing here."""


def _query(name: Token, region: Region) -> tuple[Token, Expression]:
    if region.expression is None:
        raise Fault(f"query {name}: {normalise.NO_POSITIVE_PART}", region.origin)
    return name, region.expression


def _operation(operate: Callable[[Sequence[Region]], Region]) -> Callable[..., Region]:
    """What the operator in front of a list of operands does to them."""

    def operation(operator: Token, *operands: Region) -> Region:
        with blamed_on(operator):
            return operate(operands)

    return operation


def _atom(quoted: Token) -> Region:
    with blamed_on(quoted):
        return Region(Atom(quoted[1:-1]))


_RULES: Mapping[str, Callable[..., object]] = {
    "start": _queries,
    "setting": _setting,
    "query": _query,
    "union": _operation(normalise.union),
    "intersection": _operation(normalise.intersection),
    "complement": complement,
    "atom": _atom,
}


@cache
def _parser() -> Lark:
    return load_grammar("cisi.lark", _RULES)
