r"""Post-retrieval filtering: the ranking for the positive part, without the documents that hold a negated term.

The search itself filters, so no ranking is cut off before it is filtered. The negative weight of a negated term is
larger than the best score, so exactly the documents that hold such a term get a score below 0.

Source: Widdows 2003, Sections 3.1 and 4.1, where each negated term is a word of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pyserini_compneg.compose.quantisation import LARGEST_QUANTISED
from pyserini_compneg.compose.rewrite import conjunction, holds_difference
from pyserini_compneg.compose.scoring import Linear, ScoringNode, Sum
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.expression import Atom, Expression, Intersection, format_expression
from pyserini_compneg.vectors import SparseVector, positive_part, top_terms, without_terms


def wanted_and_negated(expression: Expression) -> tuple[Expression, list[str]]:
    r"""Takes A \ B apart, with whatever set identities bring an expression into that form.

    Returns:
        A, and the texts of the atoms whose documents are left out.

    Raises:
        CompositionError: An expression that has no such form: an alternative holds a difference, or anything but atoms
            and unions of atoms is excluded.

    >>> from pyserini_compneg.expression import parse
    >>> wanted_and_negated(parse("a NOT (b OR c)"))
    (Atom(text='a'), ['b', 'c'])
    """
    parts = conjunction(expression)
    for member in parts.kept:
        if holds_difference(member):
            raise CompositionError(f"filtering works on the whole ranking, not within {format_expression(member)!r}")
    negated = []
    for member in parts.excluded:
        if not isinstance(member, Atom):
            raise CompositionError(f"filtering leaves out atoms and unions of atoms, not {format_expression(member)!r}")
        negated.append(member.text)
    return parts.kept[0] if len(parts.kept) == 1 else Intersection(parts.kept), negated


def negated_terms(wanted: Iterable[SparseVector], negated: Iterable[SparseVector], top: int) -> list[str]:
    """The terms whose documents are left out: the heaviest terms of each negated vector that no wanted vector has.

    A term of both would leave out wanted documents: ``film`` in ``films NOT war films``.

    Args:
        wanted: The vectors of the wanted atoms.
        negated: The vectors of the negated atoms.
        top: How many terms of each negated vector are taken.

    >>> negated_terms([{"film": 0.5}], [{"war": 2.0, "film": 0.5, "battle": 1.0}, {"war": 1.0}], top=1)
    ['war']
    """
    support = {term for vector in wanted for term in positive_part(vector)}
    others = (without_terms(positive_part(vector), support) for vector in negated)
    return list(dict.fromkeys(term for vector in others for term in top_terms(vector, top)))


def filtered(wanted: ScoringNode, terms: Sequence[str], best_score: float) -> ScoringNode:
    """The query that gives a document with one of the terms a score below 0, and any other document its old score.

    Args:
        wanted: A query whose scores are above 0.
        terms: The terms.
        best_score: The best score that the query has in the index.

    Raises:
        CompositionError: The best score is larger than any whole weight.

    >>> filtered(Linear({"film": 50.0}), ["war"], best_score=1000.0)
    Sum(children=(Linear(weights={'film': 50.0}), Linear(weights={'war': -1024.0})))
    """
    if not terms or best_score <= 0:
        return wanted
    weight = 2.0 ** math.frexp(best_score)[1]  # a power of two, which no rounding of weights changes
    if weight > LARGEST_QUANTISED:
        raise CompositionError(
            f"a best score of {best_score:g} cannot be outweighed (the limit is 2^30); lower the weight scale"
        )
    return Sum((wanted, Linear(dict.fromkeys(terms, -weight))))
