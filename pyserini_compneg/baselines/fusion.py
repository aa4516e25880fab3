r"""Score fusion: a document's scores under the atoms are added for ∪, multiplied for ∩ and subtracted for \.

:func:`fused` makes a scoring tree, which fuses the exact scores of all documents. :func:`fused_lists` fuses ranked
lists, as the paper may do; a document that a list lacks has the score 0 there. The scores are those that the index
gives to each atom alone, with whole weights. Set identities come first, as with the operators: (A \ B) ∩ C becomes
(A ∩ C) \ B, whose score is s(A)·s(C) − s(B). If only + and − remain, exact fused scores are those of the vectors'
addition and subtraction. But other documents are found: all that have a term of a positive atom, even if another atom
lowers that term.

Units. Impacts are I times a document's weights, and query weights are rounded at the scale S. So an atom's score in the
index is U = S·I times the model's score, and a product of m scores is Uᵐ times the model's. Let M be the largest number
of scores that are multiplied. A product of m scores gets the factor Uᴹ⁻ᵐ, so that all are in one unit.

Source: Krasakis, Yates, Kanoulas, Section 4.2.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyserini_compneg.compose.quantisation import WEIGHT_SCALE, checked_scale, whole
from pyserini_compneg.compose.rewrite import alternatives, conjunction
from pyserini_compneg.compose.scoring import LARGEST_DEGREE, LARGEST_WEIGHT, Linear, Product, ScoringNode, Sum
from pyserini_compneg.expression import Atom, Expression, Union, format_expression
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import SparseVector, scale

MOST_PRODUCTS = 1000

_FINENESS = 1024.0
"""Scaled weights are multiplied by it, so that rounding them costs less than a thousandth of a whole weight."""


class _Term(NamedTuple):
    """A summand of an expression's score: the product of the scores of atoms, added or subtracted."""

    sign: int
    texts: tuple[str, ...]


def fused(
    expression: Expression,
    vectors: Mapping[str, SparseVector],
    impact_scale: float | None = None,
    best_scores: Mapping[str, float] | None = None,
    weight_scale: float = WEIGHT_SCALE,
) -> ScoringNode:
    """The scoring tree that ranks documents by the fused scores of an expression's atoms.

    A document is found if it has a term of every factor of some product, or of some positive atom that stands alone.

    Args:
        expression: The query.
        vectors: The vector of each atom, by its text; weights above 0 if scores are multiplied. An atom without terms
            has the score 0.
        impact_scale: I; None if it is not known. It is needed if products of different numbers of scores are added.
        best_scores: The best score that the index has for each atom's vector, rounded at the same scale. If they are
            given, every atom's scores are divided by its best one before they are fused (score-fusion-scaled), and I is
            not needed. That is min-max scaling whose minimum is always 0, the score of a document without the atom's
            terms. An atom whose best score is 0 scores 0 everywhere.
        weight_scale: S.

    Returns:
        A tree of whole weights, which may be larger than 2³¹ − 1 in a sum with products. It ``is_empty`` if it finds
        nothing.

    Raises:
        QueryError: A difference would be multiplied, or anything but an atom subtracted; a product has more than
            ``LARGEST_DEGREE`` factors, or there are more than ``MOST_PRODUCTS`` products; the impact scale is needed
            and unknown; a weight is out of range.

    >>> from pyserini_compneg.expression import parse
    >>> vectors = {"a": {"s": 1.5}, "b": {"t": 0.2}, "c": {"u": 1.0}}
    >>> fused(parse("a AND b"), vectors)
    Product(operands=({'s': 150.0}, {'t': 20.0}), power=1.0, root=1, weight=1.0)
    >>> fused(parse("a AND b NOT c"), vectors, impact_scale=10).children[1]
    Linear(weights={'u': -100000.0})
    """
    checked_scale(weight_scale)
    terms = sorted(_terms(expression), key=lambda term: -term.sign)
    texts = {text for term in terms for text in term.texts}
    rounded = {text: whole(vectors[text], weight_scale) for text in texts}
    if best_scores is None:
        unit = None if impact_scale is None else weight_scale * impact_scale
        return _tree(terms, rounded, unit, dict.fromkeys(texts, 1.0), fineness=1.0)
    known = {text: weights for text, weights in rounded.items() if best_scores[text] > 0}
    return _tree(terms, known, 1.0, {text: 1 / best_scores[text] for text in known}, _FINENESS)


def fused_lists(
    expression: Expression, lists: Mapping[str, Mapping[str, float]], unit: float | None = None
) -> dict[str, float]:
    """The fused scores of the documents in ranked lists.

    A document is found if the lists of all factors of a product have it, or that of a positive atom that stands alone.

    Args:
        expression: The query.
        lists: The scores of the documents in each atom's list, by its text. A document that a list lacks scores 0.
        unit: U, by which all scores are divided first; None if it is not known.

    Raises:
        QueryError: As for :func:`fused`.

    >>> from pyserini_compneg.expression import parse
    >>> fused_lists(parse("a NOT b"), {"a": {"d1": 3.0, "d2": 2.0}, "b": {"d1": 2.0, "d3": 1.0}})
    {'d1': 1.0, 'd2': 2.0}
    """
    terms = _terms(expression)
    unit = _known_unit(unit, terms)
    found: dict[str, None] = {}
    for term in terms:
        if term.sign > 0:
            first, *others = (lists[text] for text in term.texts)
            found |= dict.fromkeys(docid for docid in first if all(docid in other for other in others))
    return {
        docid: math.fsum(
            term.sign * math.prod(lists[text].get(docid, 0.0) / unit for text in term.texts) for term in terms
        )
        for docid in found
    }


def _tree(
    terms: Sequence[_Term],
    vectors: Mapping[str, SparseVector],
    unit: float | None,
    factors: Mapping[str, float],
    fineness: float,
) -> ScoringNode:
    """The tree in which each atom's score is multiplied by its factor; ``unit`` is U, None if it is not known."""
    terms = [term for term in terms if all(vectors.get(text) for text in term.texts)]
    if not any(term.sign > 0 for term in terms):
        return Linear({})
    unit, degree = _known_unit(unit, terms), max(len(term.texts) for term in terms)
    shares = [math.prod(factors[text] for text in term.texts) * unit ** (degree - len(term.texts)) for term in terms]
    children: list[ScoringNode] = []
    for term, share in zip(terms, shares, strict=True):
        first, *others = (vectors[text] for text in term.texts)
        weights = scale(whole(first, fineness * share / min(shares), LARGEST_WEIGHT), term.sign)
        children.append(Product((weights, *others), power=1.0) if others else Linear(weights))
    return children[0] if len(children) == 1 else Sum(tuple(children))


def _known_unit(unit: float | None, terms: Sequence[_Term]) -> float:
    """U, or 1 where it is neither known nor needed."""
    if unit is None and len({len(term.texts) for term in terms}) > 1:
        raise QueryError(
            "scores can be added to products of scores only if the index gives its impact scale; use "
            "score-fusion-scaled, or an index of this package"
        )
    return 1.0 if unit is None else unit


def _terms(expression: Expression) -> list[_Term]:
    match expression:
        case Atom(text):
            return [_Term(1, (text,))]
        case Union():
            return [term for member in alternatives(expression) for term in _terms(member)]
    parts = conjunction(expression)
    if parts.barred:
        raise _refusal("leave documents out, as NOT! does")
    if parts.required:
        raise _refusal("require every operand, as AND! does")
    subtracted = []
    for member in parts.excluded:
        if not isinstance(member, Atom):
            raise _refusal(f"subtract {format_expression(member)!r}, only atoms and unions of atoms")
        subtracted.append(_Term(-1, (member.text,)))
    kept = [_terms(member) for member in parts.kept]
    if len(kept) == 1:
        return kept[0] + subtracted
    for member, terms in zip(parts.kept, kept, strict=True):
        if any(term.sign < 0 for term in terms):
            raise _refusal(f"multiply {format_expression(member)!r}, which holds a difference")
    return [_Term(1, texts) for texts in _multiplied([[term.texts for term in terms] for terms in kept])] + subtracted


def _multiplied(sums: Sequence[Sequence[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """A product of sums as a sum of products."""
    if (count := math.prod(map(len, sums))) > MOST_PRODUCTS:
        raise _refusal(f"add up {count} products (the limit is {MOST_PRODUCTS})")
    products = [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*sums)]
    if (most := max(map(len, products))) > LARGEST_DEGREE:
        raise _refusal(f"multiply {most} scores (the limit is {LARGEST_DEGREE})")
    return products


def _refusal(what: str) -> QueryError:
    return QueryError(f"score fusion cannot {what}; use operators")
