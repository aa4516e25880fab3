"""The operands of AND, and the terms by which a document has them. AND is soft: documents that lack some are found."""

from __future__ import annotations

from collections.abc import Mapping

from pyserini_compneg.compose.intersection import distinguishing_terms
from pyserini_compneg.compose.operators import Operators
from pyserini_compneg.compose.rewrite import Conjunction, alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.expression import Expression, atoms, format_expression
from pyserini_compneg.support.vectors import SparseVector, max_pool


def conjunctions(expression: Expression, operators: Operators) -> list[Conjunction]:
    """The conjunction in each alternative of the outermost OR, with each operand once.

    There are none if a document lacks nothing of an alternative, because that is no conjunction. Of a single
    alternative, what AND! requires is left out: a document that is found has it.

    >>> from pyserini_compneg.expression import parse
    >>> [whole.kept for whole in conjunctions(parse("swiss AND goat NOT cheese"), Operators())]
    [(Atom(text='swiss'), Atom(text='goat'))]
    >>> conjunctions(parse("swiss AND goat OR cheese"), Operators()), conjunctions(parse("a AND! b"), Operators())
    ([], [])
    """
    wholes = [
        whole._replace(kept=tuple(dict.fromkeys(whole.kept)))
        for whole in map(conjunction, alternatives(verbalised(expression, operators)))
    ]
    if len(wholes) > 1:
        wholes = [whole._replace(required=()) for whole in wholes]  # it may be found by another alternative
    return wholes if all(len(whole.kept) > 1 and not _strict(whole).issuperset(whole.kept) for whole in wholes) else []


def operand_terms(whole: Conjunction, vectors: Mapping[str, SparseVector], top: int) -> dict[str, tuple[str, ...]]:
    """For each operand that AND! does not require, as text, the terms of which a document that has it has one.

    An operand that is a tree has the terms of its atoms, without what NOT takes away.
    """
    pooled = [max_pool([vectors[text] for text in atoms(without_differences(operand))]) for operand in whole.kept]
    found = zip(whole.kept, distinguishing_terms(pooled, top), strict=True)
    return {format_expression(one): tuple(terms) for one, terms in found if one not in _strict(whole)}


def _strict(whole: Conjunction) -> set[Expression]:
    """The kept parts that are an operand of AND!."""
    kept = [conjunction(operand).kept for group in whole.required for operand in group]
    return {parts[0] for parts in kept if len(parts) == 1}
