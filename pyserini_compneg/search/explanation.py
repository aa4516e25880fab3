"""Explains a score by contributions of terms and of pairs, which add up to the score."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from pyserini_compneg.compose.scoring import All, Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene import Reader
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import pair_term, positive_part

_MOST_TUPLES = 4096
_SINGLE = struct.Struct("f")


class Contribution(NamedTuple):
    """The contribution of a term, or of a tuple of terms ``a∩b``, to the score; negative if it lowers the score."""

    term: str
    amount: float


class Lowering(NamedTuple):
    """A score before and after ``damped`` lowers it, and the r of :class:`~pyserini_compneg.compose.Damped`."""

    r: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A document's score, and the contributions of terms that add up to it.

    Attributes:
        docid: The document.
        score: The score, a 32-bit float as in the ranking. A document that is filtered out has the score that it would
            have otherwise.
        matched: Whether the query finds the document.
        filtered_out: The reason why a document that the query matches is left out: the filter, the part that NOT!
            excludes, or the part that AND! requires. None if it is not left out.
        contributions: The contributions, largest amount first. Their exact sum, rounded to a 32-bit float, is the
            score; with conjunctions, except for the 64-bit rounding of their products. The score of a conjunction with
            a root, such as cpt-l2, or with repeated operands, is divided among its tuples of terms in proportion to
            what each tuple adds below the root. The score that ``damped`` removes is divided among the terms of the
            excluded part.
        title: The title in the stored source, if there is one; filled by ``explain_query``.
        passage: In an index of passages, the number of the document's best passage, which is explained.
        rank: The rank, from 1. None beyond rank 1000, and if the query does not find the document. Filled by
            ``explain_query``.
        lowered: The scores that ``damped`` lowers. The losses are among the contributions.
    """

    docid: str
    score: float
    matched: bool
    contributions: tuple[Contribution, ...]
    filtered_out: str | None = None
    title: str | None = None
    rank: int | None = None
    passage: int | None = None
    lowered: tuple[Lowering, ...] = ()

    def pulled_up(self, count: int = 5) -> list[Contribution]:
        """The contributions that raise the score most."""
        return [part for part in self.contributions if part.amount > 0][:count]

    def pushed_down(self, count: int = 5) -> list[Contribution]:
        """The contributions that lower the score most, the largest loss first."""
        return [part for part in reversed(self.contributions) if part.amount < 0][:count]

    def in_unit(self, unit: float) -> Explanation:
        """A copy whose scores and contributions are divided by a number, such as ``SignedImpactSearcher.unit``."""
        parts = tuple(Contribution(part.term, part.amount / unit) for part in self.contributions)
        lowered = tuple(Lowering(one.r, one.before / unit, one.after / unit) for one in self.lowered)
        return replace(self, score=self.score / unit, contributions=parts, lowered=lowered)


class _Node(NamedTuple):
    matched: bool
    parts: list[Contribution]
    filtered_out: str | None = None
    lowered: tuple[Lowering, ...] = ()
    rest: Sequence[Contribution] = ()  # of a sum that is filtered out: what still counts, which only lowers

    @property
    def value(self) -> float:
        return math.fsum(part.amount for part in self.parts)


def explained(reader: Reader, node: ScoringNode, docid: str, filter: Filter | None) -> Explanation:
    if not isinstance(docid, str):
        raise ArgumentError(f"explain takes the id of one document, got {shown(docid)}")
    parts = _parts(reader, node, docid, filter)
    conditions = [] if filter is None or parts["allowed"] else filter.fields.items()
    each = [Filter({name: values}) for name, values in conditions]
    failed = [condition for condition in each if not _parts(reader, node, docid, condition)["allowed"]]
    root = _explain(node, iter(parts["accumulators"]))
    totals: dict[str, list[float]] = defaultdict(list)
    for part in root.parts:
        totals[part.term].append(part.amount)
    summed = (Contribution(term, math.fsum(amounts)) for term, amounts in totals.items())
    ranked = sorted(summed, key=lambda part: (-part.amount, part.term))
    reasons = [root.filtered_out] if root.filtered_out and not parts["matched"] else []
    if reasons or parts["matched"]:  # otherwise it is not a hit even without the filter
        reasons += [f"not {condition}" for condition in failed]
    filtered_out = ", ".join(reasons) or None
    score = _SINGLE.unpack(_SINGLE.pack(root.value))[0] if root.filtered_out and reasons else parts["score"]
    matched = parts["matched"] and not failed
    return Explanation(
        docid, score, matched, tuple(ranked), filtered_out, passage=parts.get("passage"), lowered=root.lowered
    )


def _parts(reader: Reader, node: ScoringNode, docid: str, filter: Filter | None) -> dict[str, Any]:
    """``accumulators`` has ``[term, impact, contribution]`` lists, in the order of the query's leaves."""
    parts = reader.explain(node, docid, filter)
    if parts is None:
        raise reader.unknown_document(docid)
    return parts


def _explain(node: ScoringNode, accumulators: Iterator[Sequence[Any]]) -> _Node:
    match node:
        case All():
            return _Node(True, [])
        case Linear(weights):
            raising = [Contribution(term, amount) for term, _, amount in next(accumulators)]
            negative = len(positive_part(weights)) < len(weights)
            lowering = [Contribution(term, -amount) for term, _, amount in next(accumulators)] if negative else []
            return _Node(bool(raising), raising + lowering)
        case Product():
            return _explain_product(node, [next(accumulators) for _ in node.factors])
        case Max(children):
            return _explain_max([_explain(child, accumulators) for child in children])
        case Sum(children):
            return _explain_sum([_explain(child, accumulators) for child in children])
        case Damped(child, excluded):
            wanted = _explain(child, accumulators)
            return _explain_damped(node, wanted, [_explain(part, accumulators) for part in excluded])
        case Excluding(child):
            return _explain_excluding(node, _explain(child, accumulators), accumulators)


def _explain_max(children: Sequence[_Node]) -> _Node:
    """The best alternative that matches. If none matches, the best of those that are filtered out."""
    alternatives = [child for child in children if child.matched] or [child for child in children if child.filtered_out]
    return max(alternatives, key=lambda child: child.value, default=_Node(False, []))


def _explain_sum(children: Sequence[_Node]) -> _Node:
    """All parts. It is filtered out if no part matches and one is filtered out."""
    matched = any(child.matched for child in children)
    filtered_out = next((child.filtered_out for child in children if child.filtered_out), None)
    rest = [part for child in children for part in (child.rest if child.filtered_out else child.parts)]
    if matched or filtered_out is None:
        lowered = tuple(one for child in children if not child.filtered_out for one in child.lowered)
        return _Node(matched, rest, None, lowered)
    parts = [part for child in children for part in child.parts]
    lowered = tuple(one for child in children for one in child.lowered)
    return _Node(False, parts, filtered_out, lowered, rest)


def _explain_excluding(node: Excluding, child: _Node, accumulators: Iterator[Sequence[Any]]) -> _Node:
    """The child's node, filtered out if an excluded part matches or if the document lacks a required part."""
    found = []
    for part, limit in zip(node.excluded, node.above, strict=True):
        if isinstance(part, Filter):
            found += [str(part)] if next(accumulators) else []
        elif (explained := _explain(part, accumulators)).value > limit:
            found.append(max(explained.parts, key=lambda one: one.amount).term)
    lacking = [" or ".join(part.weights) for part in node.required if not _explain(part, accumulators).matched]
    if not (found or lacking):
        return child
    if not (child.matched or child.filtered_out):
        return _Node(False, [])
    reasons = [child.filtered_out] if child.filtered_out else []
    reasons += [f"{sign} {', '.join(terms)}" for sign, terms in (("NOT!", found), ("AND!", lacking)) if terms]
    return child._replace(matched=False, filtered_out=", ".join(reasons), rest=())


def _explain_damped(node: Damped, child: _Node, excluded: Sequence[_Node]) -> _Node:
    """The child's contributions, and the loss by the excluded part with the largest ratio, divided among its terms."""
    ratios = [part.value / best for part, best in zip(excluded, node.best, strict=True)]
    worst = excluded[ratios.index(max(ratios))]
    if child.value <= 0 or worst.value <= 0:
        return child
    lowering = Lowering(min(1.0, max(ratios)), child.value, node.damped(child.value, max(ratios)))
    loss = (lowering.before - lowering.after) / worst.value
    parts = [*child.parts, *(part._replace(amount=-loss * part.amount) for part in worst.parts)]
    return child._replace(parts=parts, lowered=(*child.lowered, lowering))


def _explain_product(node: Product, factors: Sequence[Sequence[Any]]) -> _Node:
    """A product of sums as a sum of products, with one contribution per tuple of terms, as if the index had pairs."""
    if not all(factors):
        return _Node(False, [])
    counts = [count for _, count in node.factors]
    sums = [math.fsum(amount for _, _, amount in factor) for factor in factors]
    total = math.prod(math.prod([value] * count) for value, count in zip(sums, counts, strict=True))
    score = node.weight * total ** (1 / node.root)
    matched = node.weight > 0
    if node.is_sum_over_tuples:
        factors = [factor for factor, count in zip(factors, counts, strict=True) for _ in range(count)]
    else:
        total = math.prod(sums)
    if math.prod(len(factor) for factor in factors) > _MOST_TUPLES:
        return _Node(matched, [Contribution(f"conjunction of {len(node.operands)}", score)])
    parts = []
    for combination in product(*factors):
        term = pair_term(*(term for term, _, _ in combination))
        parts.append(Contribution(term, score / total * math.prod(amount for _, _, amount in combination)))
    return _Node(matched, parts)
