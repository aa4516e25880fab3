"""Finds the operands of AND that hits lack. AND is soft: documents that have only some operands are hits, too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pyserini_compneg.compose import Linear, Operators, QueryEncoder
from pyserini_compneg.compose.atom_vectors import atom_vectors
from pyserini_compneg.compose.queries import ParsedQuery
from pyserini_compneg.compose.rewrite import Conjunction, alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.compose.words import atom_words, required_words
from pyserini_compneg.expression import Expression, atoms, format_expression
from pyserini_compneg.lucene import Reader
from pyserini_compneg.support.vectors import SparseVector


def lacking_operands(
    reader: Reader,
    encoder: QueryEncoder,
    operators: Operators,
    queries: Sequence[ParsedQuery],
    docids: Sequence[Sequence[str]],
    threads: int = 1,
) -> list[list[tuple[str, ...]]]:
    """For each query, the operands that each document lacks; see :meth:`SignedImpactSearcher.lacking`."""
    wholes = [
        [] if query.expression is None else conjunctions(query.expression, operators)
        for query in queries  # a composed query no longer has operands
    ]
    if not any(wholes):
        return [[()] * len(group) for group in docids]
    operands = dict.fromkeys(operand for whole in wholes for parts in whole for operand in parts.kept)
    texts = dict.fromkeys(text for operand in operands for text in atoms(without_differences(operand)))
    words = atom_words(list(texts), encoder, atom_vectors(list(texts), encoder))
    sought = [[operand_terms(parts, words, operators.cpt_terms) for parts in whole] for whole in wholes]
    terms_asked = [(i, terms) for i, parts in enumerate(sought) for one in parts for terms in one.values() if terms]
    asked = list(dict.fromkeys(terms_asked))
    vectors = [Linear(dict.fromkeys(terms, 1.0)) for _, terms in asked]
    scores = reader.score(vectors, [docids[i] for i, _ in asked], threads)
    has = {key: [score not in (None, math.inf) for score in found] for key, found in zip(asked, scores, strict=True)}

    def lacking(i: int, place: int) -> tuple[str, ...]:
        """The operands that a document lacks, in the alternative with the fewest of them; ``place`` is its position."""
        each = (tuple(name for name, terms in one.items() if not (terms and has[i, terms][place])) for one in sought[i])
        return min(each, key=len, default=())

    return [[lacking(i, place) for place in range(len(group))] for i, group in enumerate(docids)]


def conjunctions(expression: Expression, operators: Operators) -> list[Conjunction]:
    """The conjunction of each alternative of the outermost OR, with distinct operands.

    The list is empty if an alternative is not a conjunction, because then a document lacks nothing of it. If there is a
    single alternative, operands of AND! are left out: every hit has them.

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
        wholes = [whole._replace(required=()) for whole in wholes]  # hits of another alternative may lack them
    return (
        wholes if all(len(whole.kept) > 1 and not _required(whole).issuperset(whole.kept) for whole in wholes) else []
    )


def operand_terms(whole: Conjunction, words: Mapping[str, SparseVector], top: int) -> dict[str, tuple[str, ...]]:
    """The words of each operand, except operands of AND!. A document lacks an operand if it has none of its words."""
    found = zip(whole.kept, required_words(whole.kept, words, top), strict=True)
    return {format_expression(one): tuple(terms) for one, terms in found if one not in _required(whole)}


def _required(whole: Conjunction) -> set[Expression]:
    """The kept parts that are operands of AND!."""
    kept = [conjunction(operand).kept for group in whole.required for operand in group]
    return {parts[0] for parts in kept if len(parts) == 1}
