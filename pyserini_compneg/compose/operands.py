"""The operands of AND, and the terms by which a document has them. AND is soft: documents that lack some are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyserini_compneg.compose.intersection import distinguishing_terms
from pyserini_compneg.compose.operators import Operators
from pyserini_compneg.compose.rewrite import alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.expression import Expression, atoms, format_expression
from pyserini_compneg.vectors import SparseVector, max_pool


def conjunctions(expression: Expression, operators: Operators) -> list[tuple[Expression, ...]]:
    """The operands of AND in each alternative of the outermost OR, without what NOT takes away, each operand once.

    There are none where an alternative is no conjunction: a document lacks nothing of that one.

    >>> from pyserini_compneg.expression import parse
    >>> conjunctions(parse("swiss AND goat NOT cheese"), Operators())
    [(Atom(text='swiss'), Atom(text='goat'))]
    >>> conjunctions(parse("swiss AND goat OR cheese"), Operators())
    []
    """
    members = alternatives(verbalised(expression, operators))
    found = [tuple(dict.fromkeys(conjunction(member).kept)) for member in members]
    return found if all(len(operands) > 1 for operands in found) else []


def operand_terms(
    operands: Sequence[Expression], vectors: Mapping[str, SparseVector], top: int
) -> dict[str, tuple[str, ...]]:
    """For each operand of a conjunction, as text, the terms of which a document that has the operand has one.

    An operand that is a tree has the terms of its atoms, without what NOT takes away.
    """
    pooled = [max_pool([vectors[text] for text in atoms(without_differences(operand))]) for operand in operands]
    names = map(format_expression, operands)
    return {name: tuple(terms) for name, terms in zip(names, distinguishing_terms(pooled, top), strict=True)}


def fewest(lacking: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """What a document lacks, given what it lacks of each alternative: the fewest operands, the first of equally few."""
    return min(lacking, key=len, default=())
