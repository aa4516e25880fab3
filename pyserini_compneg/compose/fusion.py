r"""Score fusion: the scores that a document has under each atom, added for ∪, multiplied for ∩, subtracted for \.

The scoring tree has the exact scores of all documents, where the paper seems to fuse ranked lists. Set identities come
first, as with the operators: (A \ B) ∩ C becomes (A ∩ C) \ B, which is s(A)·s(C) − s(B). Where only + and − are left,
fused scores are those of the vectors' addition and subtraction; what differs is which documents are found, here those
that have a term of a positive atom, be it one that another atom lowers.

Units. Impacts are I times a document's weights, and query weights are rounded at the scale S; so a sum over impacts is
U = S·I times the model's score, and a product of m sums is Uᵐ times the product of scores. To be added up as the
model's scores would be, a product of m sums gets the factor Uᴹ⁻ᵐ, where M is the most that are multiplied anywhere.

Source: Krasakis, Yates, Kanoulas, Section 4.2.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyserini_compneg import algebra
from pyserini_compneg.compose.quantisation import WEIGHT_SCALE, checked_scale, whole
from pyserini_compneg.compose.rewrite import alternatives, conjunction
from pyserini_compneg.compose.scoring import LARGEST_DEGREE, LARGEST_WEIGHT, Linear, Product, ScoringNode, Sum
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.expression import Atom, Expression, Union, format_expression
from pyserini_compneg.vectors import SparseVector, scale

MOST_PRODUCTS = 1000

_Factors: TypeAlias = tuple[tuple[str, ...], ...]
"""A product of sums: the texts of the atoms whose scores are added up in each factor."""


class _Polynomial(NamedTuple):
    """An expression's score: products that are added up, and the scores of atoms that are subtracted."""

    added: list[_Factors]
    subtracted: list[str]


def fused(
    expression: Expression,
    vectors: Mapping[str, SparseVector],
    impact_scale: float | None = None,
    best_scores: Mapping[str, float] | None = None,
    weight_scale: float = WEIGHT_SCALE,
) -> ScoringNode:
    """The scoring tree that ranks documents by the fused scores of an expression's atoms.

    A document is found if it has a term of every factor of some product, of some positive atom where there is but one.

    Args:
        expression: What is searched for.
        vectors: The vector of each atom, by its text; weights above 0 where scores are multiplied. An atom without
            terms has the score 0.
        impact_scale: I; None where it is not known. It has to be where products are added to others of fewer factors.
        best_scores: The best score that the index has for each atom's vector, rounded at the same scale. With these,
            every atom's scores are divided by its best one before they are fused (score-fusion-scaled), and I is not
            needed. That is min-max scaling with the score of a document without the atom's terms, 0, as the minimum,
            in a collection without such a document, too. An atom whose best score is 0 scores 0 everywhere.
        weight_scale: S. Weights are multiplied by more where units or divisors ask for it, never by less.

    Returns:
        A tree of whole weights. Beside products they may be larger than 2³¹ − 1. It ``is_empty`` if it finds nothing.

    Raises:
        CompositionError: Scores of what something is subtracted from to be multiplied, or those of anything but atoms
            to be subtracted; products of more than ``LARGEST_DEGREE`` factors, or more than ``MOST_PRODUCTS`` of them;
            an unknown impact scale where it is needed; a weight out of range.

    >>> from pyserini_compneg.expression import parse
    >>> vectors = {"a": {"s": 1.5}, "b": {"t": 0.2}, "c": {"u": 1.0}}
    >>> fused(parse("a AND b"), vectors)
    Product(operands=({'s': 150.0}, {'t': 20.0}), power=1.0, root=1)
    >>> fused(parse("a AND b NOT c"), vectors, impact_scale=10).children[1]
    Linear(weights={'u': -100000.0})
    """
    checked_scale(weight_scale)
    polynomial = _polynomial(expression)
    texts = {text for factors in polynomial.added for factor in factors for text in factor} | {*polynomial.subtracted}
    known = {text: vectors[text] for text in texts if vectors[text]}
    if best_scores is None:
        unit = None if impact_scale is None else weight_scale * impact_scale
    else:
        unit = max((best_scores[text] for text in known), default=0.0)
        known = {text: scale(known[text], unit / best_scores[text]) for text in known if best_scores[text] > 0}
    return _tree(polynomial, known, unit, weight_scale)


def _tree(
    polynomial: _Polynomial, vectors: Mapping[str, SparseVector], unit: float | None, weight_scale: float
) -> ScoringNode:
    products = [
        [algebra.UNIONS["addition"](vectors[text] for text in factor if text in vectors) for factor in factors]
        for factors in polynomial.added
    ]
    products = [factors for factors in products if all(factors)]
    taken = [vectors[text] for text in polynomial.subtracted if text in vectors]
    degree = max(map(len, products), default=0)

    def whole_at(vector: SparseVector, factors: int) -> dict[str, int]:
        """Its weights, with the factor that makes the unit of so many factors that of all products."""
        return whole(vector, weight_scale * _gain(unit, degree - factors), LARGEST_WEIGHT)

    children: list[ScoringNode] = []
    for first, *others in products:
        heavy = whole_at(first, 1 + len(others))
        rest = [whole(vector, weight_scale) for vector in others]
        children.append(Product((heavy, *rest), power=1.0) if rest else Linear(heavy))
    if not children:
        return Linear({})
    children += [Linear(scale(whole_at(vector, 1), -1)) for vector in taken]
    return children[0] if len(children) == 1 else Sum(tuple(children))


def _gain(unit: float | None, missing_factors: int) -> float:
    if not missing_factors:
        return 1.0
    if unit is None:
        raise CompositionError(
            "scores and products of scores can be fused only where the index says its impact scale; use "
            "score-fusion-scaled, or an index of this package"
        )
    return unit**missing_factors


def _polynomial(expression: Expression) -> _Polynomial:
    match expression:
        case Atom(text):
            return _Polynomial([((text,),)], [])
        case Union():
            members = [_polynomial(member) for member in alternatives(expression)]
            return _Polynomial(
                [factors for member in members for factors in member.added],
                [text for member in members for text in member.subtracted],
            )
    parts = conjunction(expression)
    taken = [_subtrahend(member) for member in parts.excluded]
    kept = [_polynomial(member) for member in parts.kept]
    if len(kept) == 1:
        return _Polynomial(kept[0].added, kept[0].subtracted + taken)
    for member, score in zip(parts.kept, kept, strict=True):
        if score.subtracted:
            raise _refusal(f"multiply {format_expression(member)!r}, from which something is subtracted")
    return _Polynomial(_multiplied([_sums_merged(score.added) for score in kept]), taken)


def _subtrahend(expression: Expression) -> str:
    if isinstance(expression, Atom):
        return expression.text
    raise _refusal(f"subtract {format_expression(expression)!r}, only atoms and unions of atoms")


def _sums_merged(added: Iterable[_Factors]) -> list[_Factors]:
    """The sum of scores as one factor, beside the products that are added to it."""
    sums = tuple(text for factors in added if len(factors) == 1 for text in factors[0])
    products = [factors for factors in added if len(factors) > 1]
    return [(sums,), *products] if sums else products


def _multiplied(parts: Sequence[Sequence[_Factors]]) -> list[_Factors]:
    if (count := math.prod(map(len, parts))) > MOST_PRODUCTS:
        raise _refusal(f"add up {count} products (the limit is {MOST_PRODUCTS})")
    multiplied = [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]
    if (most := max(map(len, multiplied))) > LARGEST_DEGREE:
        raise _refusal(f"multiply {most} scores (the limit is {LARGEST_DEGREE})")
    return multiplied


def _refusal(what: str) -> CompositionError:
    return CompositionError(f"score fusion cannot {what}; use operators")
