"""What a query should find, in plain Python: every document is scored by the definitions, and all are sorted.

It shares no code with the package and reads none of its objects. An expression is nested tuples, ``("and", A, B)``,
``("or", A, B)`` or ``("not", A, B)`` around names of atoms; the whole may be ``("and!", A, B)``. A document is its
impacts by term, below 0 for complements.

Sources: Krasakis, Yates, Kanoulas (equation numbers in parentheses), Widdows 2003, docs/operators.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from math import prod

STRENGTHS = {
    "ignore": 0,
    "disentangled": 1,
    "subtraction": 1,
    "nrf": 0.25,
    "constant": 0.75,
    "orthogonal": 1,
    "damped": 0.5,
}
POOLED = ("cpt+maxpool", "disentangled")  # joint occurrence beside the elementwise maximum
MOST_WAYS = 16  # beyond them NOT inside NOT is approximated
DUST = 1e-9  # what is left of weights that cancel


class UndeterminedError(Exception):
    """The definitions leave the ranking open, because a weight is rounded from the middle or in unclear company."""


@dataclass
class Leaf:
    """Σ w·d; rounding keeps one of the wanted terms, all positive ones if none are named."""

    weights: dict
    wanted: set | None = None


@dataclass
class Joint:
    """weight · (Π over the operands of Σ (w·d)^power)^(1/root): the factored form of (6) to (8)."""

    operands: list
    power: float
    root: int
    weight: float = 1.0


@dataclass
class Best:
    """The maximum over the children that match."""

    children: list


@dataclass
class Total:
    """The sum of the children."""

    children: list


@dataclass
class Damped:
    """max(s · (1 - strength · r³), min(s, floor) · (1 - r³ / 50)) for s above 0, with r = b / best b.

    Here b is the score of the penalty with the largest ratio. The floor is the sixth best s, if there is one, and if no
    penalty gives its sixth best document 4/5 of its best score.
    """

    kept: object
    penalties: list
    strength: float


class Oracle:
    """Composes and ranks the queries of one collection.

    Args:
        documents: The impacts of each document.
        atoms: The vector of each atom.
        union, intersection, difference: The operators.
        difference_weight, cpt_terms, cpt_weight: Their settings.
        weight_scale: Query weights are round(w · scale).
    """

    def __init__(
        self,
        documents,
        atoms,
        union,
        intersection,
        difference,
        difference_weight=None,
        cpt_terms=5,
        cpt_weight=1.0,
        weight_scale=1.0,
    ):
        self.documents, self.atoms, self.scale = documents, atoms, weight_scale
        self.union, self.intersection, self.difference = union, intersection, difference
        self.tops = {}
        self.strength = STRENGTHS[difference]
        if difference_weight is not None and difference != "ignore":
            self.strength = difference_weight
        self.top, self.cpt_weight = cpt_terms, cpt_weight

    def ranking(self, expression):
        """All documents that match, as ``(docid, score, magnitude)``, best first, ties by docid."""
        needed = []
        if expression[0] == "and!":
            needed, expression = self.needed(expression[1:]), ("and", *expression[1:])
        node = self.whole(self.compose(expression))
        scored = {docid: self.score(node, impacts) for docid, impacts in self.documents.items()}
        has_all = {
            docid
            for docid, impacts in self.documents.items()
            if all(any(impacts.get(term, 0) > 0 for term in terms) for terms in needed)
        }
        found = [(docid, *value) for docid, value in scored.items() if value and docid in has_all]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))

    def needed(self, operands):
        """The terms of which a document needs one, for each operand of ``and!``."""
        vectors = [above_zero(self.vector(without_exclusions(operand))) for operand in operands]
        own = [
            without(vector, {term for other in vectors if other is not vector for term in other}) for vector in vectors
        ]
        return [heaviest(alone or vector, self.top) for alone, vector in zip(own, vectors, strict=True)]

    # From expressions to nodes

    def compose(self, expression, intersection=None):
        """The node of an expression; ``intersection`` is that of its conjunction, if it is not the chosen one."""
        if isinstance(expression, str):
            return Leaf(dict(self.atoms[expression]))
        if expression[0] == "or":
            return self.united(alternatives(expression))
        kept, excluded = gathered(expression)
        if not self.strength:
            excluded = []
        ways = without_nested(kept, excluded)
        if len(ways) > 1:
            return self.united([rebuilt(*way) for way in ways], "dismax", intersection, narrowed="cpt")
        kept, excluded = ways[0]
        wanted = self.compose(kept[0]) if len(kept) == 1 else self.joined([*map(self.compose, kept)], intersection)
        return self.reduced(wanted, kept, excluded) if excluded and has_terms(wanted) else wanted

    def united(self, ways, operator=None, intersection=None, narrowed=None):
        """(9), (10), or the best score; a conjunction that would undo another way's exclusion is narrowed."""
        operator = operator or self.union
        if narrowed is None and self.intersection in POOLED and operator != "addition":
            narrowed = "cpt"
        parts = [gathered(way) for way in ways]
        nodes = []
        for way, (kept, excluded) in zip(ways, parts, strict=True):
            undoes = any(
                any(part in others for part in kept) and any(part not in excluded for part in less)
                for others, less in parts
            )
            nodes.append(self.compose(way, narrowed if undoes and self.strength and narrowed else intersection))
        if operator != "dismax" and all(isinstance(node, Leaf) for node in nodes):
            vectors = [node.weights for node in nodes]
            return Leaf((total if operator == "addition" else pooled)(vectors), wanted_terms(nodes))
        nodes = [node for node in nodes if has_terms(node)]
        if len(nodes) < 2:
            return nodes[0] if nodes else Leaf({})
        return Total(nodes) if operator == "addition" else Best(nodes)

    def joined(self, nodes, intersection):
        """(6) to (8) and the other intersections."""
        intersection = intersection or self.intersection
        vectors = [node.weights if isinstance(node, Leaf) else positive(node) for node in nodes]
        if intersection in ("addition", "maxpool"):
            return Leaf((total if intersection == "addition" else pooled)(vectors), wanted_terms(nodes))
        if self.intersection == "cpt-pairs":
            return self.few_tuples(vectors)
        if intersection == "disentangled":
            either, pairs = Leaf(pooled(vectors), wanted_terms(nodes)), self.own_pairs([*map(above_zero, vectors)])
            return Total([*pairs, either]) if pairs else either
        joint = self.joint(vectors, self.cpt_weight if self.intersection in POOLED else 1.0)
        if intersection not in POOLED:
            return joint or Leaf({})
        either = Leaf(pooled(vectors), wanted_terms(nodes))
        return Total([joint, either]) if joint else either

    def joint(self, vectors, weight=1.0):
        """The joint occurrence of the heaviest positive terms; None if an operand has none."""
        operands = [heaviest(vector, self.top) for vector in vectors]
        norm, root = (2, 2) if self.intersection == "cpt-l2" else (1, 1)
        return Joint(operands, norm / len(operands), root, weight) if all(operands) else None

    def own_pairs(self, vectors):
        """The joint occurrence of each two operands, by the terms that no other operand has."""
        if not all(vectors):
            return []
        shared = {term for one, other in combinations(vectors, 2) for term in one if term in other}
        own = [vector for vector in (without(vector, shared) for vector in vectors) if vector]
        own = [heaviest(vector, self.top) for vector in own]
        if len(own) > 2 and any(all(round(w * self.scale) == 0 for w in vector.values()) for vector in own):
            raise UndeterminedError  # the heaviest term of which operands counts 1 is left open
        return [self.joint(pair, self.cpt_weight / (len(own) - 1)) for pair in combinations(own, 2)]

    def few_tuples(self, vectors):
        """(6) to (8) for the heaviest of all tuples."""
        tuples = product(*(above_zero(vector).items() for vector in vectors))
        heavy = sorted(tuples, key=lambda one: (-prod(weight for _, weight in one), one))[: self.top]
        joints = [Joint([{term: weight} for term, weight in one], 1 / len(one), 1) for one in heavy]
        return Total(joints) if joints else Leaf({})

    def reduced(self, wanted, kept, excluded):
        """(5) and the other differences; ``wanted`` is the node of the parts that are kept."""
        mentioned = terms_of(kept, self.atoms)
        vectors, joints = [], []
        for part in excluded:
            operands = [self.vector(operand) for operand in gathered(part)[0]]
            if len(operands) == 1:
                vectors += operands
            elif self.intersection in ("addition", "maxpool"):
                vectors.append((total if self.intersection == "addition" else pooled)(operands))
            elif not all(map(above_zero, operands)):
                continue  # no document is about an unknown text, so none is excluded
            elif self.difference == "orthogonal":
                vectors.append(pooled(map(above_zero, operands)))
            else:
                if self.difference in ("disentangled", "damped"):
                    operands = [without(operand, mentioned) for operand in operands]
                operands = [*filter(None, map(above_zero, operands))]
                (joints if len(operands) > 1 else vectors).extend([operands] if len(operands) > 1 else operands)
        vectors = [vector for vector in vectors if vector]
        if self.difference == "damped":
            linear = [Leaf(without(above_zero(vector), mentioned)) for vector in vectors]
            penalties = [part for part in [*linear, *map(self.joint, joints)] if self.best(self.whole(part)) > 0]
            return Damped(wanted, penalties, self.strength) if penalties else wanted
        known = len(vectors) + len(joints)
        factor = self.strength / known if self.difference == "nrf" and known else self.strength
        if self.difference == "disentangled":
            own = wanted.weights if isinstance(wanted, Leaf) else mentioned
            change = scaled(without(pooled(vectors), own), -factor)
        elif self.difference == "orthogonal":
            change = scaled(projection(positive(wanted), vectors), -factor)
            if isinstance(wanted, Leaf):
                change = scaled(projection(wanted.weights, vectors), -factor)
        else:
            change = scaled(total(vectors), -factor)
        if isinstance(wanted, Leaf):
            wanted, change = Leaf(total([wanted.weights, change]), wanted_terms([wanted])), {}
            if not joints:
                return wanted
        lowering = [self.joint(operands, -factor) for operands in joints]
        return Total([wanted, Leaf(change, set()), *lowering])

    def vector(self, expression):
        """The one vector of a part that is excluded."""
        node = self.compose(expression)
        return node.weights if isinstance(node, Leaf) else positive(node)

    # From nodes to scores

    def whole(self, node):
        """The node with whole weights; the leaves of a sum may be rounded as one."""
        if isinstance(node, Leaf):
            return Leaf(self.rounded(node.weights, node.wanted))
        if isinstance(node, Joint):
            return Joint([self.rounded(operand) for operand in node.operands], node.power, node.root, node.weight)
        if isinstance(node, Damped):
            kept, *penalties = [self.whole(part) for part in (node.kept, *node.penalties)]
            return Damped(kept, penalties, node.strength)
        if isinstance(node, Total):
            leaves = [leaf for leaf in flat_leaves(node) if leaf.weights]
            if len(leaves) > 1 and any(w * self.scale % 1 for leaf in leaves for w in leaf.weights.values()):
                raise UndeterminedError
            return Total([self.whole(child) for child in node.children])
        return Best([self.whole(child) for child in node.children])

    def rounded(self, weights, wanted=None):
        """Half to even; a vector keeps the heaviest positive ones of its wanted terms, with 1."""
        for weight in weights.values():
            product = weight * self.scale
            if 0 < abs(product % 1 - 0.5) < 1e-6:
                raise UndeterminedError
        result = {term: round(weight * self.scale) for term, weight in weights.items()}
        own = {term: weight for term, weight in weights.items() if weight > 0 and (wanted is None or term in wanted)}
        if own and not any(result[term] for term in own):
            most = max(own.values())
            heaviest = {term: 1 for term, weight in own.items() if weight == most}
            if len(heaviest) < sum(weight > most * (1 - DUST) for weight in own.values()) or most % 1:
                raise UndeterminedError
            result |= heaviest
        return {term: weight for term, weight in result.items() if weight}

    def score(self, node, impacts):
        """``(score, magnitude)``, or None if the document does not match."""
        value, size = self.value(node, impacts)
        return (value, size) if self.matches(node, impacts) else None

    def value(self, node, impacts):
        """The score that a document would have, and the sum of its parts' magnitudes."""
        if isinstance(node, Leaf):
            parts = [weight * impacts.get(term, 0) for term, weight in node.weights.items()]
            return sum(parts), sum(map(abs, parts))
        if isinstance(node, Joint):
            sums = [
                sum((weight * max(impacts.get(term, 0), 0)) ** node.power for term, weight in operand.items())
                for operand in node.operands
            ]
            result = node.weight * prod(sums) ** (1 / node.root)
            return result, abs(result)
        if isinstance(node, Best):
            found = [self.value(child, impacts) for child in node.children if self.matches(child, impacts)]
            return max(found, default=(0.0, 0.0))[0], max((size for _, size in found), default=0.0)
        if isinstance(node, Damped):
            value, size = self.value(node.kept, impacts)
            scores = [self.value(penalty, above_zero(impacts))[0] / self.best(penalty) for penalty in node.penalties]
            cube = min(1, max(scores)) ** 3
            lowered = max(value * (1 - self.strength * cube), min(value, self.floor(node)) * (1 - cube / 50))
            return lowered if value > 0 else value, size
        parts = [self.value(child, impacts) for child in node.children]
        return sum(value for value, _ in parts), sum(size for _, size in parts)

    def best(self, penalty):
        """The best score in the collection over positive impacts."""
        return self.scores_of(penalty)[0]

    def floor(self, node):
        """The sixth best score of what is kept; 0 where something broad is penalised."""
        for scores in map(self.scores_of, node.penalties):
            if len(scores) > 5 and abs(scores[5] / scores[0] - 0.8) < 1e-4:
                raise UndeterminedError
            if len(scores) > 5 and scores[5] >= 0.8 * scores[0]:
                return 0
        return max(0, *self.scores_of(node.kept)[5:6], 0)

    def scores_of(self, node):
        """The scores of all documents that match, over positive impacts, best first; 0 where there is none."""
        if id(node) not in self.tops:
            present = map(above_zero, self.documents.values())
            scores = sorted(
                (self.value(node, impacts)[0] for impacts in present if self.matches(node, impacts)), reverse=True
            )
            self.tops[id(node)] = (node, scores or [0])
        return self.tops[id(node)][1]

    def matches(self, node, impacts):
        """Whether a document is found: by a positive contribution, or by all operands of a product."""
        if isinstance(node, Leaf):
            return any(weight * impacts.get(term, 0) > 0 for term, weight in node.weights.items())
        if isinstance(node, Joint):
            return node.weight > 0 and all(
                any(impacts.get(term, 0) > 0 for term in operand) for operand in node.operands
            )
        if isinstance(node, Damped):
            return self.matches(node.kept, impacts)
        return any(self.matches(child, impacts) for child in node.children)


# Expressions


def alternatives(expression):
    """The operands of a union, and of the unions directly in it."""
    if isinstance(expression, str) or expression[0] != "or":
        return [expression]
    return [part for operand in expression[1:] for part in alternatives(operand)]


def gathered(expression):
    """The parts that a tree of ∩ and \\ keeps, and those that it excludes."""
    if isinstance(expression, str) or expression[0] == "or":
        return [expression], []
    if expression[0] == "not":
        kept, excluded = gathered(expression[1])
        return kept, excluded + alternatives(expression[2])
    sides = [gathered(operand) for operand in expression[1:]]
    return [part for kept, _ in sides for part in kept], [part for _, excluded in sides for part in excluded]


def without_exclusions(expression):
    """The expression without its excluded parts."""
    if isinstance(expression, str):
        return expression
    kind, *operands = expression
    return without_exclusions(operands[0]) if kind == "not" else (kind, *map(without_exclusions, operands))


def rebuilt(kept, excluded):
    """The expression of gathered parts."""
    expression = kept[0] if len(kept) == 1 else ("and", *kept)
    for part in excluded:
        expression = ("not", expression, part)
    return expression


def without_nested(kept, excluded):
    """Its alternatives by A \\ (C \\ E) = (A \\ C) ∪ (A ∩ E): gathered parts whose exclusions exclude nothing."""
    for part in excluded:
        inner, exceptions = gathered(part)
        if exceptions:
            others = [other for other in excluded if other != part]
            ways = [(kept, others + alternatives(rebuilt(inner, [])))]
            for exception in exceptions:
                more, less = gathered(exception)
                ways.append((kept + more, others + less))
            ways = [simple for way in ways for simple in without_nested(*way)]
            if len(ways) > MOST_WAYS:
                raise UndeterminedError
            return ways
    return [(kept, excluded)]


def terms_of(parts, atoms):
    """The terms of the atoms outside exclusions."""
    terms = set()
    for part in parts:
        if isinstance(part, str):
            terms |= set(atoms[part])
        else:
            terms |= terms_of(part[1:2] if part[0] == "not" else part[1:], atoms)
    return terms


# Vectors


def total(vectors):
    """Their sum."""
    terms = [term for vector in vectors for term in vector]
    result = {term: sum(vector.get(term, 0) for vector in vectors) for term in terms}
    return {term: weight for term, weight in result.items() if abs(weight) > DUST}


def pooled(vectors):
    """Their elementwise maximum; a term that a vector lacks counts as 0."""
    vectors = [*vectors]
    terms = [term for vector in vectors for term in vector]
    result = {term: max(vector.get(term, 0) for vector in vectors) for term in terms}
    return {term: weight for term, weight in result.items() if weight}


def scaled(vector, factor):
    """factor · vector."""
    return {term: factor * weight for term, weight in vector.items() if factor}


def above_zero(vector):
    """Its positive part."""
    return {term: weight for term, weight in vector.items() if weight > 0}


def without(vector, terms):
    """It on all other terms."""
    return {term: weight for term, weight in vector.items() if term not in terms}


def heaviest(vector, count):
    """Its heaviest positive terms; of equal ones those first in code-point order."""
    ranked = sorted(above_zero(vector).items(), key=lambda item: (-item[1], item[0]))
    close = {weight for _, weight in ranked if ranked[count:] and abs(weight - ranked[count - 1][1]) < DUST * weight}
    if len(close) > 1:
        raise UndeterminedError
    return dict(ranked[:count])


def positive(node):
    """One positive vector for a whole tree: the largest weight that a part gives to a term."""
    if isinstance(node, Leaf):
        return above_zero(node.weights)
    if isinstance(node, Joint):
        return pooled(node.operands) if node.weight > 0 else {}
    children = [node.kept] if isinstance(node, Damped) else node.children
    return pooled([positive(child) for child in children])


def wanted_terms(nodes):
    """The terms by which the wanted parts find documents."""
    terms = set()
    for node in nodes:
        if isinstance(node, Leaf):
            terms |= {term for term in above_zero(node.weights) if node.wanted is None or term in node.wanted}
        elif isinstance(node, Joint):
            terms |= {term for operand in node.operands for term in operand} if node.weight > 0 else set()
        else:
            terms |= wanted_terms([node.kept] if isinstance(node, Damped) else node.children)
    return terms


def has_terms(node):
    """Whether it is an alternative at all."""
    if isinstance(node, Leaf):
        return bool(node.weights)
    if isinstance(node, (Joint, Damped)):
        return isinstance(node, Joint) or has_terms(node.kept)
    return any(map(has_terms, node.children))


def flat_leaves(node):
    """The leaves of a sum, and of sums in it."""
    for child in node.children:
        if isinstance(child, Leaf):
            yield child
        elif isinstance(child, Total):
            yield from flat_leaves(child)


def projection(vector, others):
    """Its projection on the span of others (Widdows, Eq. 1 and 2), by Gram-Schmidt."""

    def dot(a, b):
        return sum(weight * b.get(term, 0) for term, weight in a.items())

    basis = []
    for other in others:
        rest = other
        for _ in range(2):
            for axis in basis:
                rest = total([rest, scaled(axis, -dot(rest, axis))])
        length = dot(rest, rest) ** 0.5
        if length > DUST * dot(other, other) ** 0.5:
            basis.append(scaled(rest, 1 / length))
    return total([scaled(axis, dot(vector, axis)) for axis in basis])
