"""Scores every document by docs/reference/algebra.md, in plain Python, without a look at the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from heapq import nlargest
from itertools import combinations
from math import prod

from expression_parts import alternatives, gather, kept, names

WEIGHTS = {"damped": 0.5, "disentangled": 1, "subtraction": 1, "nrf": 0.25, "constant": 0.75}
WEIGHTS |= dict.fromkeys(("orthogonal", "elementwise"), 1)
NEAR = 1e-9  # two numbers this close may be in either order after rounding


class UndeterminedError(Exception):
    """The ranking hangs on how a computer rounds."""


@dataclass
class Scores:
    """What scores documents: of which kind, the vector that operators take of it, and how."""

    kind: str
    weights: dict[str, Fraction]
    score: Callable[[dict], float]
    size: Callable[[dict], float]  # of what is summed, in absolute values
    matches: Callable[[dict], bool]
    finds: set[str]  # the terms of which rounding keeps one
    operands: tuple[dict[str, Fraction], ...] = ()


def positive(weights):
    """The part of a vector that is above 0."""
    return {term: weight for term, weight in weights.items() if weight > 0}


def without(weights, terms):
    """A vector without some terms."""
    return {term: weight for term, weight in weights.items() if term not in terms}


def maxpool(vectors):
    """The elementwise maximum, where a term that a vector lacks has 0."""
    return {term: max(v.get(term, Fraction()) for v in vectors) for term in set().union(*vectors)}


def total(vectors):
    """The sum of vectors."""
    return {term: sum(v.get(term, Fraction()) for v in vectors) for term in set().union(*vectors)}


def finding(parts):
    """The terms by which several scores find documents."""
    return set().union(*(part.finds for part in parts))


def dot(one, other):
    """The scalar product of two vectors."""
    return sum(weight * other.get(term, 0) for term, weight in one.items())


def projection(vector, others):
    """The part of a vector in the space of the others."""
    base = []
    for other in others:
        rest = total([other, *({t: -w * dot(other, b) / dot(b, b) for t, w in b.items()} for b in base)])
        if any(rest.values()):
            base.append(rest)
    return total([{t: w * dot(vector, b) / dot(b, b) for t, w in b.items()} for b in base])


class Oracle:
    """Ranks the documents of a collection for expressions with some settings."""

    def __init__(self, documents, atoms, words, scale, *, difference_weight, cpt_weight, **settings):
        self.documents, self.told, self.scale, self.settings = documents, words, Fraction(scale), settings
        self.atoms = {name: {t: Fraction(w) for t, w in vector.items()} for name, vector in atoms.items()}
        if difference_weight is None:
            difference_weight = WEIGHTS.get(settings["difference"], 0)
        self.weight, self.m = Fraction(difference_weight), settings["cpt_terms"]
        self.beta = 0.5 if cpt_weight is None else cpt_weight
        self.inexact = False  # whether floating-point weights may differ from these fractions

    def ranking(self, expression):
        """The documents that match, best first, each with its score and the size of what is summed."""
        scores = self.compose(expression)
        hits = [(name, scores.score(d), scores.size(d)) for name, d in self.documents.items() if scores.matches(d)]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    # The four kinds of scores

    def rounded(self, weights, finds):
        """The whole numbers of a vector that finds documents by some of its terms."""
        scaled = {term: weight * self.scale for term, weight in weights.items()}
        if self.inexact and any(abs(abs(w) % 1 - Fraction(1, 2)) < NEAR or 0 < abs(w) < NEAR for w in scaled.values()):
            raise UndeterminedError
        whole = {term: round(weight) for term, weight in scaled.items()}
        finding = {term: weight for term, weight in positive(weights).items() if term in finds}
        if finding and not any(whole[term] for term in finding):
            whole |= {term: 1 for term, weight in finding.items() if weight == max(finding.values())}
        return {term: weight for term, weight in whole.items() if weight}

    def vector(self, weights, operands=(), finds=None):
        """A vector; of one that lowers or excludes, with its operands, positive impacts count."""
        weights = {term: weight for term, weight in weights.items() if weight}
        finds = set(positive(weights)) & set(weights if finds is None else finds)
        whole = self.rounded(weights, finds)

        def products(d):
            return [w * (max(d.get(t, 0), 0) if operands else d.get(t, 0)) for t, w in whole.items()]

        return Scores(
            "vector",
            weights,
            lambda d: sum(products(d)),
            lambda d: sum(map(abs, products(d))),
            lambda d: any(value > 0 for value in products(d)),
            finds,
            tuple(operands or [weights]),
        )

    def product(self, operands, weight=1, power=None, root=1.0):
        """A product of the scores of its operands."""
        power, rounded = power or 1 / len(operands), [self.rounded(operand, set(operand)) for operand in operands]

        def score(d):
            sums = [sum((w * max(d.get(t, 0), 0)) ** power for t, w in weights.items()) for weights in rounded]
            return float(weight) * prod(sums) ** root

        return Scores(
            "product",
            maxpool(operands),
            score,
            score,
            lambda d: all(any(d.get(term, 0) > 0 for term in weights) for weights in rounded),
            set().union(*operands),
            tuple(operands),
        )

    def sum(self, parts, lowering=()):
        """The sum of scores, with others that lower or change it."""
        parts = [part for part in parts if part.kind != "vector" or part.weights]
        if len(parts) < 2 and not lowering:
            return parts[0] if parts else self.vector({})
        return Scores(
            "sum",
            maxpool([positive(part.weights) for part in [*parts, *lowering]]),
            lambda d: sum(part.score(d) for part in [*parts, *lowering]),
            lambda d: sum(part.size(d) for part in [*parts, *lowering]),
            lambda d: any(part.matches(d) for part in [*parts, *lowering]),
            finding(parts),
        )

    def maximum(self, parts):
        """The best of the scores that match."""
        parts = [part for part in parts if part.kind != "vector" or part.weights]
        if len(parts) < 2:
            return parts[0] if parts else self.vector({})
        return Scores(
            "maximum",
            maxpool([positive(part.weights) for part in parts]),
            lambda d: max((part.score(d) for part in parts if part.matches(d)), default=0),
            lambda d: max((part.size(d) for part in parts), default=0),
            lambda d: any(part.matches(d) for part in parts),
            finding(parts),
        )

    # Expressions

    def compose(self, expression):
        """The scores of an expression."""
        if isinstance(expression, str):
            return self.vector(self.atoms[expression])
        if expression[0] == "or":
            return self.union([self.compose(part) for part in alternatives(expression)])
        parts, taken, excluded, strict = gather(expression)
        terms = self.terms(parts)
        scores = self.intersection([self.compose(part) for part in parts])
        scores = self.difference(scores, terms, taken)
        if scores.kind == "vector" and not scores.weights:
            return scores
        return self.required(self.exclusion(scores, terms, excluded), strict)

    def terms(self, parts):
        """All terms of the atoms that are kept."""
        return {term for part in parts for name in names(kept(part)) for term in self.atoms[name]}

    def union(self, parts):
        """OR."""
        vectors, operator = all(part.kind == "vector" for part in parts), self.settings["union"]
        if operator == "addition":
            pooled = total([part.weights for part in parts])
            return self.vector(pooled, finds=finding(parts)) if vectors else self.sum(parts)
        pooled = maxpool([part.weights for part in parts]) if vectors else {}
        if operator == "maxpool" and vectors:
            return self.vector(pooled, finds=finding(parts))
        best = self.maximum(parts)
        if operator == "maxpool" or best.kind == "vector":
            return best
        quarter = {term: weight / 4 for term, weight in pooled.items()}
        return self.sum([best, self.vector(quarter, finds=finding(parts))])

    def intersection(self, parts):
        """AND."""
        operator = self.settings["intersection"]
        if len(parts) == 1:
            return parts[0]
        if operator in ("cpt", "cpt-l2", "cpt-pairs"):
            operands = [self.heaviest(positive(part.weights)) for part in parts]
            n = len(operands)
            if not all(operands):
                return self.vector({})
            if operator == "cpt":
                return self.product(operands)
            if operator == "cpt-l2":
                return self.product(operands, power=2 / n, root=0.5)
            return self.pairs(operands)
        vectors = [part.weights for part in parts]
        if operator == "addition":
            return self.vector(total(vectors), finds=finding(parts))
        pooled = self.vector(maxpool(vectors), finds=finding(parts))
        if operator == "maxpool":
            return pooled
        own = [o for o in map(self.heaviest, self.distinguishing([positive(v) for v in vectors])) if o]
        if len(own) > 2 and not all(any(round(w * self.scale) for w in o.values()) for o in own):
            raise UndeterminedError  # the pairs are fewer products, whose operands are rounded together
        weight = self.beta / max(len(own) - 1, 1)
        return self.sum([pooled, *(self.product(two, weight) for two in combinations(own, 2))])

    def pairs(self, operands):
        """The heaviest products of one term of each operand."""
        best = {(): Fraction(1)}
        for operand in operands:
            best = self.heaviest({(*terms, t): w * operand[t] for terms, w in best.items() for t in operand})
        return self.sum([self.product([{t: o[t]} for t, o in zip(terms, operands, strict=True)]) for terms in best])

    def heaviest(self, weights):
        """The heaviest terms, of equal ones those that come first."""
        order = sorted(weights, key=lambda term: (-weights[term], term))
        if self.inexact and len(order) > self.m and weights[order[self.m - 1]] - weights[order[self.m]] < NEAR:
            raise UndeterminedError
        return {term: weights[term] for term in order[: self.m]}

    @staticmethod
    def distinguishing(vectors):
        """Of each vector the terms that no other one has."""
        return [without(v, set().union(*vectors[:i], *vectors[i + 1 :])) for i, v in enumerate(vectors)]

    # NOT

    def taken(self, part, terms, leave):
        """The scores of what one part excludes, or None."""
        parts, less, *_ = gather(part)
        operands = [positive(self.compose(operand).weights) for operand in parts]
        if not all(operands):
            return None
        if leave:
            operands = [rest for operand in operands if (rest := without(operand, terms))]
        if not operands:
            return None
        operator = self.settings["intersection"]
        if len(operands) == 1 or operator in ("maxpool", "addition"):
            scores = self.vector((total if operator == "addition" else maxpool)(operands), operands=operands)
        else:
            scores = self.product([self.heaviest(operand) for operand in operands])
        if scores.kind == "product" and self.settings["difference"] not in ("damped", "orthogonal", "elementwise"):
            return scores
        return self.difference(scores, terms | self.terms(parts), less, nested=True)

    def difference(self, kept, terms, parts, nested=False):
        """NOT."""
        operator = self.settings["difference"]
        if operator == "ignore" or not self.weight or (kept.kind == "vector" and not kept.weights):
            return kept
        found = [self.taken(part, terms, operator in ("disentangled", "damped")) for part in parts]
        found = [scores for scores in found if scores]
        if operator == "damped":
            found = [scores for scores in found if max(self.best(scores), default=0) > 0]
        if not found:
            return kept
        if operator == "damped":
            return self.damped(kept, found)
        if operator == "orthogonal":
            self.inexact = True
            away = projection(kept.weights, [positive(scores.weights) for scores in found])
            products = []
        elif operator == "elementwise":
            self.inexact = True
            negatives = [negative for scores in found if (negative := positive(scores.weights))]
            shares = maxpool([{t: w * w / dot(b, b) for t, w in b.items()} for b in negatives])
            away = {t: w * shares[t] for t, w in kept.weights.items() if t in shares}
            products = []
        else:
            vectors = [scores.weights for scores in found if scores.kind == "vector"]
            away = (maxpool if operator == "disentangled" else total)([positive(v) for v in vectors])
            products = [scores for scores in found if scores.kind != "vector" and not nested]
        change = {term: -self.weight * weight for term, weight in away.items()}
        lowering = [self.scaled(scores, -self.weight) for scores in products]
        if kept.kind == "vector":
            kept = self.vector(total([kept.weights, change]), finds=kept.finds)
        elif change := {term: weight for term, weight in change.items() if weight < 0}:
            lowering.append(self.vector(change, finds=()))
        return self.sum([kept], lowering) if lowering else kept

    @staticmethod
    def scaled(scores, factor):
        """Scores times a number."""
        return Scores(
            scores.kind,
            {},
            lambda d: float(factor) * scores.score(d),
            lambda d: abs(float(factor)) * scores.size(d),
            lambda d: False,
            set(),
        )

    def best(self, scores, n=1):
        """The n best scores in the index, best first, of the documents that match."""
        return nlargest(n, [scores.score(d) for d in self.documents.values() if scores.matches(d)])

    def damped(self, kept, found):
        """The damped difference."""
        best, weight = [self.best(scores, 10) for scores in found], float(self.weight)
        classes = [len(b) == 10 and not_less(5 * b[9], 4 * b[0]) for b in best]
        fourth = self.best(kept, 4)
        floor = 0 if any(classes) or len(fourth) < 4 else max(fourth[3], 0)

        def score(d):
            s = kept.score(d)
            r = max(0, *(scores.score(d) / b[0] for scores, b in zip(found, best, strict=True)))
            return s if s <= 0 else max(s * (1 - weight * r**3), min(s, floor) * (1 - 0.02 * r**3))

        return Scores("damped", positive(kept.weights), score, kept.size, kept.matches, kept.finds)

    # NOT! and AND!

    def exclusion(self, scores, terms, parts):
        """NOT!."""
        if self.settings["exclusion"] == "words":
            parts = [part for part in parts if self.has({t: 1 for v in self.atoms.values() for t in v}, part)]
            return self.only(scores, lambda d: not any(self.has(d, part) for part in parts)) if parts else scores
        found = [b for part in parts if (b := self.taken(part, terms, leave=True))]
        if not found:
            return scores
        tests = [self.excludes(b) for b in found]
        return self.only(scores, lambda d: not any(test(d) for test in tests))

    def excludes(self, excluded):
        """Whether a document matches what is excluded."""
        rule = self.settings["exclusion"]
        if rule == "any":
            operands = [self.heaviest(o) for o in excluded.operands]
            return lambda d: all(any(d.get(t, 0) > 0 for t in o) for o in operands)
        limit = Fraction("0.5" if rule == "score" else str(rule)) * max(self.best(excluded), default=0)
        return lambda d: excluded.matches(d) and not not_less(limit, excluded.score(d))

    def words(self, name):
        """The words of an atom, with their weights; 0 for a word that no document has."""
        vector, told = self.atoms[name], self.told[name]
        if told is None:
            own = positive(vector)
            told = sorted(own, key=lambda term: (-own[term], term))[: len(name.split())]
        return {term: vector.get(term, 0) for term in told if vector.get(term, 0) >= 0}

    def has(self, d, part):
        """Whether a document has what NOT! excludes."""
        if isinstance(part, str):
            words = self.words(part)
            return bool(words) and all(weight and d.get(term, 0) > 0 for term, weight in words.items())
        return (any if part[0] == "or" else all)(self.has(d, operand) for operand in part[1:])

    def required(self, scores, strict):
        """AND!."""
        sets = []
        for operands in strict:
            vectors = [maxpool([*map(self.words, names(kept(operand)))]) for operand in dict.fromkeys(operands)]
            pairs = zip(self.distinguishing(vectors), vectors, strict=True)
            sets += [self.heaviest(positive(own or v)) for own, v in pairs]
        if not all(sets):
            return self.vector({})
        return self.only(scores, lambda d: all(any(d.get(t, 0) > 0 for t in o) for o in sets)) if sets else scores

    @staticmethod
    def only(scores, allowed):
        """The same scores, of fewer documents."""
        return Scores(
            "filtered",
            positive(scores.weights),
            lambda d: scores.score(d) if allowed(d) else 0,
            scores.size,
            lambda d: scores.matches(d) and allowed(d),
            scores.finds,
        )


def not_less(one, other):
    """Whether one number is at least another, unless that hangs on rounding."""
    exact = isinstance(one, (int, Fraction)) and isinstance(other, (int, Fraction))
    if not exact and abs(one - other) <= 1e-6 * max(abs(one), abs(other)):
        raise UndeterminedError
    return one >= other
