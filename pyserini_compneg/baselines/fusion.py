r"""Score fusion: a document's scores under the atoms are added for ∪, multiplied for ∩ and subtracted for \.

:func:`fused` makes a scoring tree, which fuses the exact scores of all documents. :func:`fused_lists` fuses ranked
lists, as the paper may do; a document that a list lacks has the score 0 there. The scores are the
index's scores for each atom alone, with whole weights. Set identities come first, as with the operators: (A \ B) ∩ C
becomes (A ∩ C) \ B, whose score is s(A)·s(C) − s(B). If only + and − remain, exact fused scores equal the scores of the
added and subtracted vectors, but fusion finds more documents: all with a term of a positive atom. If A is {bird: 1} and
B is {bird: 2}, fusion of A \ B finds each document with bird; the vector A − B finds none.

Units. Impacts are I times a document's weights, and query weights are rounded at the scale S. So an atom's score in the
index is U = S·I times the model's score, and a product of m scores is Uᵐ times the model's. Let M be the largest number
of scores that are multiplied. A product of m scores gets the factor Uᴹ⁻ᵐ, so that all are in one unit.

Source: Krasakis, Yates, Kanoulas, Section 4.2.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyserini_compneg.compose import WEIGHT_SCALE, Linear, Product, ScoringNode, Sum, quantised
from pyserini_compneg.compose.atom_vectors import atom_vectors
from pyserini_compneg.compose.quantisation import checked_scale, whole
from pyserini_compneg.compose.rewrite import alternatives, conjunction
from pyserini_compneg.compose.scoring import LARGEST_DEGREE, LARGEST_WEIGHT
from pyserini_compneg.expression import Atom, Expression, Union, atoms, format_expression
from pyserini_compneg.search.ranked_hits import as_expressions, ranked, ranked_hits, warn_of_no_result
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import IndexFormatError, QueryError
from pyserini_compneg.support.progress import gathered_warnings
from pyserini_compneg.support.vectors import SparseVector, scale

MOST_PRODUCTS = 1000

_FINENESS = 1024.0
"""Multiplies scaled weights, so that rounding them costs less than a thousandth of a whole weight."""


@dataclass(frozen=True, slots=True)
class ScoreFusion:
    """Ranks by the scores of the atoms, fused: + for ∪, · for ∩ and − for a difference.

    Attributes:
        scaled: Whether the scores of each atom are first scaled to the range 0 to 1. The atom's best score becomes 1.
            The score that becomes 0 is the score of a document without the atom's terms; with ``depth``, it is the
            last score of the list.
        depth: None fuses the exact scores of all documents. A number fuses ranked lists of this length, one for each
            atom. A document has the score 0 in a list that lacks it. A list holds only documents that the filter
            allows, so a filter may change scores.

    Source: Krasakis, Yates, Kanoulas, Section 4.2.2. They rank for each query independently and fuse the scores, and do
    not say how long the lists are, nor which score a missing document has.
    """

    scaled: bool = False
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.depth is not None:
            checked_count("depth", self.depth)

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        expressions, reader = as_expressions(request.queries), searcher.reader
        if reader.manifest is not None and reader.manifest.signed:
            what = "holds negative weights of documents, for which score fusion is not defined"
            raise IndexFormatError(f"{reader.folder} {what}")  # scores there have no lower bound of 0
        texts = list(dict.fromkeys(text for expression in expressions for text in atoms(expression)))
        vectors = atom_vectors(texts, searcher.encoder)
        if self.depth is None:
            nodes = self._trees(searcher, expressions, vectors, request.threads)
            return searcher.batch_search(nodes, request.qids, request.k, request.threads, filter=request.filters)
        rankings = self._of_lists(searcher, expressions, vectors, request)
        # Fusing lists makes no trees, so these stand in for them in the warning.
        stand_ins = [Sum(tuple(Linear(vectors[text]) for text in atoms(expression))) for expression in expressions]
        warn_of_no_result(reader, request.qids, rankings, expressions, stand_ins, request.filters)
        return dict(zip(request.qids, rankings, strict=True))

    def _trees(
        self,
        searcher: SignedImpactSearcher,
        expressions: Sequence[Expression],
        vectors: Mapping[str, SparseVector],
        threads: int,
    ) -> list[ScoringNode]:
        """Scoring trees that fuse the scores of all documents. Their weights include the factors between units."""
        scores = None
        if self.scaled:
            nodes = [quantised(Linear(vector), searcher.weight_scale) for vector in vectors.values()]
            found = zip(vectors, searcher.reader.search(nodes, 1, threads), strict=True)
            scores = {text: ranking.scores[0] if ranking.scores else 0.0 for text, ranking in found}
        scale = _impact_scale(searcher)
        return [fused(expression, vectors, scale, scores, searcher.weight_scale) for expression in expressions]

    def _of_lists(
        self,
        searcher: SignedImpactSearcher,
        expressions: Sequence[Expression],
        vectors: Mapping[str, SparseVector],
        request: SearchRequest,
    ) -> list[list[Hit]]:
        """The rankings of fused lists. Each atom is searched for once with each filter."""
        assert self.depth is not None
        asked = list(zip(expressions, request.filters, strict=True))
        pairs = list(dict.fromkeys((text, filter) for expression, filter in asked for text in atoms(expression)))
        nodes = [quantised(Linear(vectors[text]), searcher.weight_scale) for text, _ in pairs]
        names, filters = [text for text, _ in pairs], [filter for _, filter in pairs]
        with gathered_warnings():
            found = ranked_hits(searcher.reader, nodes, names, self.depth, request.threads, filters)
        lists = {pair: _min_max(hits) if self.scaled else dict(hits) for pair, hits in zip(pairs, found, strict=True)}
        unit = 1.0 if self.scaled else _unit(_impact_scale(searcher), searcher.weight_scale)
        rankings = []
        for expression, filter in asked:
            own = {text: lists[text, filter] for text in atoms(expression)}
            rankings.append(ranked(map(Hit._make, fused_lists(expression, own, unit).items()), request.k))
        return rankings


def _impact_scale(searcher: SignedImpactSearcher) -> float | None:
    return searcher.reader.manifest.impact_scale if searcher.reader.manifest else None


def _unit(impact_scale: float | None, weight_scale: float) -> float | None:
    """U, or None if I is not known."""
    return None if impact_scale is None else weight_scale * impact_scale


def _min_max(hits: Sequence[Hit]) -> dict[str, float]:
    """The scores of a list, scaled so that the first is 1 and the last is 0. If all scores are equal, all become 1."""
    if not hits:
        return {}
    high, low = hits[0].score, hits[-1].score
    return {docid: (score - low) / (high - low) if high > low else 1.0 for docid, score in hits}


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

    A document is found if it has a term of every factor of some product, or a term of some positive atom that stands
    alone. Weights are whole, and may be larger than 2³¹ − 1 in a sum with products.

    ``impact_scale`` is I, None if it is not known, and ``weight_scale`` is S. ``best_scores`` are the best scores that
    the index has for the atoms' vectors, rounded at S. If ``best_scores`` is given, each atom's scores are divided by
    the atom's best score before fusion (score-fusion-scaled), and I is not needed. This is min-max scaling whose
    minimum is always 0, the score of a document without the atom's terms. An atom whose best score is 0 scores 0
    everywhere.

    >>> from pyserini_compneg.expression import parse
    >>> vectors = {"a": {"s": 1.5}, "b": {"t": 0.2}, "c": {"u": 1.0}}
    >>> fused(parse("a AND b"), vectors)
    Product(operands=({'s': 150.0}, {'t': 20.0}), power=1.0, root=1, weight=1.0)
    >>> fused(parse("a AND b NOT c"), vectors, impact_scale=10).children[1]
    Linear(weights={'u': -100000.0})
    """
    checked_scale(weight_scale)
    terms = sorted(_terms(expression), key=lambda term: -term.sign)  # positive terms first
    texts = dict.fromkeys(text for term in terms for text in term.texts)
    rounded = {text: whole(vectors[text], weight_scale) for text in texts}
    if best_scores is None:
        scalings, fineness, unit = dict.fromkeys(rounded, 1.0), 1.0, _unit(impact_scale, weight_scale)
    else:
        scalings = {text: 1 / best_scores[text] for text in rounded if best_scores[text] > 0}
        fineness, unit = _FINENESS, 1.0
    terms = [term for term in terms if all(rounded[text] and text in scalings for text in term.texts)]
    if not any(term.sign > 0 for term in terms):
        return Linear({})
    unit, degree = _known_unit(unit, terms), max(len(term.texts) for term in terms)
    factors = [math.prod(scalings[text] for text in term.texts) * unit ** (degree - len(term.texts)) for term in terms]
    children: list[ScoringNode] = []
    for term, factor in zip(terms, factors, strict=True):
        first, *others = (rounded[text] for text in term.texts)
        relative = fineness * factor / min(factors)  # ranking depends only on the ratios of the factors
        weights = scale(whole(first, relative, LARGEST_WEIGHT), term.sign)
        children.append(Product((weights, *others), power=1.0) if others else Linear(weights))
    return children[0] if len(children) == 1 else Sum(tuple(children))


def fused_lists(
    expression: Expression, lists: Mapping[str, Mapping[str, float]], unit: float | None = None
) -> dict[str, float]:
    """The fused scores of the documents in ranked lists, one list for each atom, by its text.

    A document is found if it is in the lists of all factors of a product, or in the list of a positive atom that stands
    alone. All scores are first divided by ``unit``, U. None means that U is not known.

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


def _known_unit(unit: float | None, terms: Sequence[_Term]) -> float:
    """U, or 1 if U is neither known nor needed."""
    if unit is None and len({len(term.texts) for term in terms}) > 1:
        what = "scores can be added to products of scores only if the index gives its impact scale"
        raise QueryError(what, remedy="use score-fusion-scaled, or an index of this package")
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
    """Expands a product of sums into a sum of products."""
    if (count := math.prod(map(len, sums))) > MOST_PRODUCTS:
        raise _refusal(f"add up {count} products (the limit is {MOST_PRODUCTS})")
    products = [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*sums)]
    if (most := max(map(len, products))) > LARGEST_DEGREE:
        raise _refusal(f"multiply {most} scores (the limit is {LARGEST_DEGREE})")
    return products


def _refusal(what: str) -> QueryError:
    return QueryError(f"score fusion cannot {what}", remedy="use operators")
