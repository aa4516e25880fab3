"""Random scoring trees and documents, and the score of a document from the definitions."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum

TERMS = st.sampled_from("abcdef")
POSITIVE = st.dictionaries(TERMS, st.integers(1, 9).map(float), min_size=1, max_size=4)
SIGNED = st.dictionaries(TERMS, st.integers(-9, 9).map(float), max_size=4)
DOCUMENTS = st.dictionaries(TERMS, st.integers(1, 50).map(float))
POWERS = st.sampled_from([None, 0.5, 2 / 3, 0.7, 1.0])
ROOTS = st.sampled_from([1, 2, 2, 3])
BEST_SCORES = st.sampled_from([1.0, 50.0, 400.0])
DAMPED_WEIGHTS = st.sampled_from([0.1, 0.5, 1.0])
FLOORS = st.sampled_from([0.0, 0.0, 3.0, 40.0])
LIMITS = st.sampled_from([0.0, 0.0, 2.718281828, 141.4213562])  # no score that is rounded elsewhere falls on one
PRODUCT_WEIGHTS = st.sampled_from([1.0, 1.0, 0.3, -0.5, -1.0, -4.0])


def nodes() -> st.SearchStrategy[ScoringNode]:
    """Trees of every shape."""

    def above(children: st.SearchStrategy[ScoringNode]) -> st.SearchStrategy[ScoringNode]:
        several = st.lists(children, min_size=1, max_size=3).map(tuple)
        lowered = st.builds(damped, children, excluded, DAMPED_WEIGHTS, FLOORS)
        return several.map(Max) | several.map(Sum) | lowered | left_out(children, barred, POSITIVE)

    operands = st.lists(POSITIVE, min_size=2, max_size=3).map(tuple)
    excluded, barred = excluded_parts(POSITIVE, operands), excluded_parts(POSITIVE, operands, LIMITS)
    products = operands.map(Product) | st.builds(Product, operands, POWERS, ROOTS, PRODUCT_WEIGHTS)
    return st.recursive(SIGNED.map(Linear) | products, above, max_leaves=8)


def excluded_parts(
    vectors: st.SearchStrategy, operands: st.SearchStrategy, numbers: st.SearchStrategy = BEST_SCORES
) -> st.SearchStrategy:
    """What damps a score, or excludes: vectors and products, each with its best score or its limit."""
    products = st.builds(Product, operands, POWERS, ROOTS, st.sampled_from([1.0, 0.3]))
    return st.lists(st.tuples(vectors.map(Linear) | products, numbers), min_size=1, max_size=3)


def damped(child: ScoringNode, excluded: list[tuple[Linear | Product, float]], weight: float, floor: float) -> Damped:
    parts, best = zip(*excluded, strict=True)
    return Damped(child, parts, best, weight, floor)


def left_out(
    children: st.SearchStrategy, barred: st.SearchStrategy, vectors: st.SearchStrategy
) -> st.SearchStrategy[Excluding]:
    """Nodes that exclude documents, require terms, or do both."""
    required = st.lists(vectors.map(Linear), min_size=1, max_size=2).map(tuple)
    exclude = st.builds(excluding, children, barred, st.just(()) | required)
    return exclude | st.builds(Excluding, children, required=required)


def excluding(
    child: ScoringNode, excluded: list[tuple[Linear | Product, float]], required: tuple[Linear, ...]
) -> Excluding:
    parts, limits = zip(*excluded, strict=True)
    return Excluding(child, parts, limits, required)


def defined_score(node: ScoringNode, document: dict[str, float]) -> tuple[bool, float]:
    """Whether a document, whose weights may be negative, matches a query, and its score."""
    match node:
        case Linear(weights):
            parts = [weight * document.get(term, 0.0) for term, weight in weights.items()]
            return any(part > 0 for part in parts), math.fsum(parts)
        case Product(operands, power, root, weight):
            p = power or 1 / len(operands)
            sums = [
                math.fsum((w * max(document.get(t, 0.0), 0.0)) ** p for t, w in operand.items()) for operand in operands
            ]
            return weight > 0 and all(sums), weight * math.prod(sums) ** (1 / root)
        case Max(children):
            matching = [value for matches, value in (defined_score(child, document) for child in children) if matches]
            return bool(matching), max(matching, default=0.0)
        case Damped(child, excluded, bests, weight, floor):
            matches, value = defined_score(child, document)
            present = {term: impact for term, impact in document.items() if impact > 0}
            share = min(max(defined_score(b, present)[1] / best for b, best in zip(excluded, bests, strict=True)), 1)
            lowered = max(value * (1 - weight * share**3), min(value, floor) * (1 - 0.02 * share**3))
            return matches, lowered if value > 0 else value
        case Excluding(child, excluded, above, required):
            present = {term: impact for term, impact in document.items() if impact > 0}
            scores = [defined_score(part, present)[1] for part in excluded]
            barred = any(score > limit for score, limit in zip(scores, above, strict=True))
            lacking = any(present.keys().isdisjoint(part.weights) for part in required)
            return (False, 0.0) if barred or lacking else defined_score(child, document)
        case Sum(children):
            scores = [defined_score(child, document) for child in children]
            return any(matches for matches, _ in scores), math.fsum(value for _, value in scores)
