"""The meaning of a scoring tree, written again from the definitions and in no hurry: every document, every term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, ScoringNode
from pyserini_compneg.expression import Atom, Difference, Filter, Intersection, Union
from pyserini_compneg.lucene import Ranking

ROUNDING = 2.0**-22
"""Weights are held to 24 bits relative to the largest of their vector, and scores are 32-bit floats."""


class Score(NamedTuple):
    """A document's score, and the magnitude of what was added up for it: a signed sum may cancel, its errors do not."""

    matched: bool
    value: float
    magnitude: float

    @property
    def tolerance(self) -> float:
        return ROUNDING * self.magnitude


def score(node: ScoringNode, impacts: Mapping[str, float], fields: Mapping[str, list] = MappingProxyType({})) -> Score:
    """The score of a document. Negative impacts count in linear leaves alone."""
    if isinstance(node, Linear):
        return _linear(node.weights, impacts)
    if isinstance(node, Product):
        return _product(node, impacts)
    if isinstance(node, Damped):
        child = score(node.child, impacts, fields)
        present = _positive(impacts)
        parts = [(score(part, present), best) for part, best in zip(node.excluded, node.best, strict=True)]
        share = min(max(part.value / best for part, best in parts), 1)
        kept = min(child.value, node.floor) * (1 - 0.02 * share**3)
        value = max(child.value * (1 - node.weight * share**3), kept) if child.value > 0 else child.value
        error = 8 * node.weight * min(max(part.magnitude / best for part, best in parts), 1) * abs(child.value)
        return Score(child.matched, value, (1 + node.weight) * child.magnitude + error)
    if isinstance(node, Excluding):
        present = _positive(impacts)
        named = (passes(part, fields) for part in node.excluded if isinstance(part, Filter))
        pairs = zip(node.excluded, node.above, strict=True)
        above = (score(part, present).value > limit for part, limit in pairs if not isinstance(part, Filter))
        lacking = any(score(part, present).value <= 0 for part in node.required)
        return Score(False, 0.0, 0.0) if any(named) or any(above) or lacking else score(node.child, impacts, fields)
    children = [score(child, impacts, fields) for child in node.children]
    matched = [child for child in children if child.matched]
    if isinstance(node, Max):
        value = max((child.value for child in matched), default=0.0)
        return Score(bool(matched), value, max((child.magnitude for child in matched), default=0.0))
    value = math.fsum(child.value for child in children)
    return Score(bool(matched), value, sum(child.magnitude for child in children))


def evaluate(node: ScoringNode, impacts: Mapping[str, float]) -> float | None:
    """The score of a document, or None if it does not match."""
    found = score(node, impacts)
    return found.value if found.matched else None


def passes(filter: Filter, fields: Mapping[str, list]) -> bool:
    """Whether a document has one of the values of each field. A range is two numbers around dots; < leaves one out."""

    def has(value: object, wanted: str) -> bool:
        least, dots, most = wanted.partition("..")
        if not dots:
            return str(value) == wanted
        if not isinstance(value, int):
            return False
        low, high = int(least.rstrip("<") or value), int(most.lstrip("<") or value)
        return low + least.endswith("<") <= value <= high - most.startswith("<")

    return all(
        any(has(value, one) for value in fields.get(name, []) for one in wanted)
        for name, wanted in filter.fields.items()
    )


def _positive(impacts: Mapping[str, float]) -> dict[str, float]:
    return {term: impact for term, impact in impacts.items() if impact > 0}


def _linear(weights: Mapping[str, float], impacts: Mapping[str, float]) -> Score:
    shared = [term for term in weights if term in impacts]
    largest = max((abs(weight) for weight in weights.values()), default=0.0)
    return Score(
        any(weights[term] * impacts[term] > 0 for term in shared),
        math.fsum(weights[term] * impacts[term] for term in shared),
        sum(largest * abs(impacts[term]) for term in shared),
    )


def _product(node: Product, impacts: Mapping[str, float]) -> Score:
    """Weights are held to so many bits of the largest of their vector, and an error counts for more below a root."""
    power = node.power or 1 / len(node.operands)
    value, magnitude = 1.0, 1.0
    for operand in node.operands:
        shared = [term for term in operand if impacts.get(term, 0) > 0]
        value *= math.fsum((operand[term] * impacts[term]) ** power for term in shared)
        magnitude *= sum((max(operand.values()) * impacts[term]) ** power for term in shared)
    rooted = value ** (1 / node.root)
    error = (value + 4 * ROUNDING * magnitude) ** (1 / node.root) - rooted if node.power else 0.0
    magnitude = abs(node.weight) * (rooted + error / ROUNDING)
    return Score(node.weight > 0 and value > 0, node.weight * rooted, magnitude)


def check_ranking(
    node: ScoringNode,
    documents: Mapping[str, Mapping[str, int]],
    ranking: Ranking,
    hits: int,
    fields: Mapping[str, Mapping[str, list]] = MappingProxyType({}),
) -> None:
    """Makes sure that a ranking is the best ``hits`` of the documents, in the order of score and of the ids' bytes."""
    scored = {docid: score(node, impacts, fields.get(docid, {})) for docid, impacts in documents.items()}
    expected = {docid: found for docid, found in scored.items() if found.matched}
    scores = dict(zip(ranking.docids, ranking.scores, strict=True))
    assert len(scores) == len(ranking.docids) == min(hits, len(expected))
    keys = [(-value, docid.encode()) for docid, value in scores.items()]
    assert keys == sorted(keys)
    for docid, value in scores.items():
        assert abs(value - expected[docid].value) <= expected[docid].tolerance, (docid, value, expected[docid])
    if len(scores) < len(expected):
        last = ranking.scores[-1]
        for docid in expected.keys() - scores.keys():
            assert expected[docid].value <= last + expected[docid].tolerance, (docid, expected[docid], last)


def fused_score(expression, scores):
    """What is added, what is subtracted, and how many scores are multiplied at most, by set identities and arithmetic.

    What a conjunction's operand subtracts is subtracted from the whole: (A \\ B) ∩ C = (A ∩ C) \\ B.
    """
    match expression:
        case Atom(text):
            return scores[text], 0.0, 1
        case Union(operands):
            parts = [fused_score(operand, scores) for operand in operands]
            return sum(p for p, _, _ in parts), sum(n for _, n, _ in parts), max(d for _, _, d in parts)
        case Intersection(operands):
            parts = [fused_score(operand, scores) for operand in operands]
            return math.prod(p for p, _, _ in parts), sum(n for _, n, _ in parts), sum(d for _, _, d in parts)
        case Difference(left, right):
            plus, minus, degree = fused_score(left, scores)
            return plus, minus + fused_score(right, scores)[0], degree
