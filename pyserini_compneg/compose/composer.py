r"""Composes expressions into scoring trees, bottom-up, by the definitions of docs/reference/algebra.md.

Composition is a pure function of the expression, the vectors and words of its atoms, and the operators. What only an
index knows stays open in the nodes, see ``resolve``.

An expression is an atom, a union, or a conjunction: the tree of ∩ and \ between atoms and unions is gathered first, see
``rewrite.conjunction``. If all operands are vectors and the operator works on vectors, the result is a vector, one
linear leaf. Otherwise it is a tree of scores. Where an operator needs a vector and has a tree, it takes the largest
positive weight that a leaf of the tree gives a term.

The excluded part, B*, has a score of its own, by which ``damped`` lowers documents. The other operators subtract the
vector of B*. NOT! and AND! leave out documents by the words of atoms, see ``words``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from pyserini_compneg.compose.intersection import (
    CPT_WEIGHT,
    cpt_operands,
    heaviest_tuples,
    own_terms,
    pairwise,
)
from pyserini_compneg.compose.operator_names import Operator
from pyserini_compneg.compose.operators import DIFFERENCE, EXCLUSION_SHARE, INTERSECTION, UNION, Operators
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    conjunction,
    without_differences,
)
from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.compose.trees import is_empty, kept_terms, leaf_vectors, nodes, positive_weights, summands, summed
from pyserini_compneg.compose.union import DISMAX_POOLED
from pyserini_compneg.compose.words import clauses, required_words
from pyserini_compneg.expression import (
    Atom,
    Expression,
    Filter,
    Union,
    atoms,
    format_expression,
)
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import (
    SparseVector,
    add,
    max_pool,
    positive_part,
    scale,
    without_terms,
)

_DISENTANGLED, _ORTHOGONAL = ("disentangled", "damped"), ("orthogonal", "elementwise")
"""The differences that remove the terms of A from the excluded part."""


@dataclass(frozen=True, slots=True)
class Composer:
    """Composes expressions without vanilla operators."""

    operators: Operators
    vectors: Mapping[str, SparseVector]  # the vector of each atom's text
    words: Mapping[str, SparseVector]  # of the atoms that NOT! excludes and of the operands of AND!
    context: Sequence[str] = ()  # the atoms of the text that was read; `damped` adds them with a small weight

    def compose(self, expression: Expression) -> ScoringNode:
        """The scoring tree of an expression. Its weights are not rounded, and its nodes may be open."""
        if isinstance(expression, Atom):
            return Linear(self.vectors[expression.text])
        if isinstance(expression, Union):
            return united(self.operators.union, list(map(self.compose, alternatives(expression))))
        return self._conjunction(conjunction(expression))

    def _conjunction(self, whole: Conjunction) -> ScoringNode:
        """The intersection of the kept parts, without the excluded parts."""
        inside = replace(self, context=())
        node = self._intersection(list(map(inside.compose, dict.fromkeys(whole.kept))))
        if whole.excluded and self.operators.strength and any(leaf_vectors(node)):
            node = self._difference(node, self._terms(whole.kept), whole.excluded)
        if whole.barred and any(leaf_vectors(node)):
            node = self._excluding(node, whole)
        return self._requiring(node, whole) if whole.required and any(leaf_vectors(node)) else node

    def _requiring(self, node: ScoringNode, whole: Conjunction) -> ScoringNode:
        """Restricts the node to documents that lack no operand of AND!. An operand without a word empties it."""
        groups = (required_words(group, self.words, self.operators.cpt_terms) for group in whole.required)
        required = [terms for group in groups for terms in group]
        if not all(required):
            return Linear({})
        parts = tuple(Linear(dict.fromkeys(terms, 1.0)) for terms in required)
        return replace(node, required=parts) if isinstance(node, Excluding) else Excluding(node, required=parts)

    def _terms(self, kept: Sequence[Expression]) -> set[str]:
        """The terms of A: the terms of all its atoms, except the atoms that A excludes."""
        return {term for member in kept for text in atoms(without_differences(member)) for term in self.vectors[text]}

    def _intersection(self, children: list[ScoringNode]) -> ScoringNode:
        """The operands' joint occurrence, Eq. 6 to 8, beside ``maxpool`` or alone, or one of the paper's ablations."""
        if len(children) == 1:
            return children[0]
        name, vectors = self.operators.intersection, [_vector(child) for child in children]
        if combined := INTERSECTION.function(name):
            return Linear(combined(vectors), kept_terms(*children))
        operands = [positive_part(vector) for vector in vectors]
        if name == "cpt-maxpool":
            return summed(*self._own_pairs(operands), Linear(max_pool(vectors), kept_terms(*children)))
        if not all(operands):
            return Linear({})
        if name == "cpt-pairs":
            return summed(*map(Product, heaviest_tuples(operands, self.operators.cpt_terms)))
        heaviest = tuple(cpt_operands(operands, self.operators.cpt_terms))
        return Product(heaviest, 2 / len(operands), root=2) if name == "cpt-l2" else Product(heaviest)

    def _own_pairs(self, operands: Sequence[SparseVector]) -> list[Product]:
        """β / (n − 1) times the joint occurrence of n operands, each without the terms of the other operands."""
        own = cpt_operands(own_terms(operands), self.operators.cpt_terms)
        weight = (self.operators.cpt_weight or CPT_WEIGHT) / max(1, len(own) - 1)
        return [Product(pair, weight=weight) for pair in pairwise(own)]

    def _difference(self, left: ScoringNode, a: AbstractSet[str], excluded: Sequence[Expression]) -> ScoringNode:
        r"""A \ B₁ \ … \ Bₙ, Eq. 5 and the other operators; ``left`` is A and ``a`` are its terms."""
        inside = replace(self, context=())
        parts = [inside._excluded(member, a) for member in excluded]
        if self.operators.difference == "damped":
            return self._damped(left, parts)
        if self.operators.difference in _ORTHOGONAL:
            return self._subtracted(left, list(map(positive_weights, parts)))
        each = [one for part in parts for one in summands(part)]
        vectors = [positive_part(one.weights) for one in each if isinstance(one, Linear)]
        products = [one for one in each if isinstance(one, Product) and one.weight > 0]
        lowering = [replace(product, weight=-self.operators.strength) for product in products]
        return summed(*summands(self._subtracted(left, vectors)), *lowering)

    def _excluded(self, expression: Expression, a: AbstractSet[str]) -> ScoringNode:
        """B*, the part that NOT excludes: a vector or a product, ignoring exclusions inside the part."""
        leaves_out = self.operators.difference in _DISENTANGLED
        node = self._joint(self._excluded_operands(expression, a if leaves_out else set(), "NOT lowers"))
        inner = conjunction(expression)
        if not inner.excluded or is_empty(node):
            return node
        return self._difference(node, a | self._terms(inner.kept), inner.excluded)

    def _excluded_operands(self, expression: Expression, a: AbstractSet[str], what: str) -> list[dict[str, float]]:
        """The positive weights of the operands of the excluded part, without the terms ``a`` of the wanted part.

        An operand whose terms are all in A drops out. If an operand has no known term, the result is empty.
        """
        members = dict.fromkeys(conjunction(expression).kept)
        operands = [positive_part(_vector(self.compose(member))) for member in members]
        if not all(operands):
            return []
        own = [left for left in (without_terms(operand, a) for operand in operands) if left]
        name = shown(format_expression(expression))
        said = f"the wanted part has all its terms, so {what} nothing by it"
        warn_of("part", "parts", said, {} if own else {name: name}, [name])
        return own

    def _joint(self, operands: Sequence[SparseVector]) -> Linear | Product:
        """The score of the excluded part. ``cpt`` combines several operands, unless AND gives a vector."""
        if len(operands) < 2:
            return Linear(*operands or [{}])
        if combined := INTERSECTION.function(self.operators.intersection):
            return Linear(combined(operands))
        return Product(tuple(cpt_operands(operands, self.operators.cpt_terms)))

    def _damped(self, left: ScoringNode, parts: Sequence[ScoringNode]) -> ScoringNode:
        """Damps A. For each document, uses the excluded part whose score, divided by its best score, is largest."""
        known = tuple(part for part in parts if not is_empty(part))
        if not known:
            return left
        # The context would find documents, too, so an excluding node gets none.
        has_context = self.context and not any(isinstance(node, Excluding) for node in nodes(left))
        context = max_pool([self.vectors[text] for text in self.context]) if has_context else {}
        return Damped(left, known, (), self.operators.strength, context=context)

    def _excluding(self, node: ScoringNode, whole: Conjunction) -> ScoringNode:
        """The node without the documents of the barred parts."""
        filters = [part for part in whole.barred if isinstance(part, Filter)]
        parts = [part for part in whole.barred if not isinstance(part, Filter)]
        how = self.operators.exclusion
        if how == "words":
            barred = self._worded(parts)
        else:
            a = self._terms(whole.kept)
            barred = [one for one in (self._barred(part, a) for part in parts) if not is_empty(one)]
        known = (*filters, *barred)
        if barred and how not in ("words", "any"):
            return Excluding(node, known, share=EXCLUSION_SHARE if isinstance(how, str) else how)
        return Excluding(node, known, (0.0,) * len(known)) if known else node

    def _worded(self, parts: Sequence[Expression]) -> list[Linear | Product]:
        """Nodes that match documents with all words of an atom. One node has all single words."""
        texts = [text for part in parts for text in atoms(part)]
        lacking = {text: [word for word, weight in self.words[text].items() if not weight] for text in texts}
        named = {
            text: f"{shown(text)} (the index lacks {', '.join(lacks)})"
            for text, lacks in lacking.items()
            if 0 < len(lacks) < len(self.words[text])
        }
        warn_of("atom", "atoms", "no document has all its words, so NOT! removes nothing by it", named, texts)
        every = clauses(parts, self.words)
        single = {word: 1.0 for clause in every if len(clause) == 1 for word in clause}
        several = [Product(tuple({word: 1.0} for word in sorted(clause))) for clause in every if len(clause) > 1]
        return ([Linear(single)] if single else []) + several

    def _barred(self, expression: Expression, a: AbstractSet[str]) -> Linear | Product:
        """The node by whose score NOT! excludes documents, unless it excludes by words.

        The terms of A do not count, or ``films NOT! war films`` would find nothing.
        """
        operands = self._excluded_operands(expression, a, "NOT! excludes")
        if self.operators.exclusion != "any":
            return self._joint(operands)
        each = [dict.fromkeys(operand, 1.0) for operand in cpt_operands(operands, self.operators.cpt_terms)]
        return Product(tuple(each)) if len(each) > 1 else Linear(*each or [{}])

    def _subtracted(self, left: ScoringNode, negatives: Sequence[SparseVector]) -> ScoringNode:
        """Applies the operator to a vector. To a tree, adds what the operator would lower in the tree's vector."""
        weight, subtract = self.operators.strength, DIFFERENCE.function(self.operators.difference)
        assert subtract  # `damped` works on scores, and `ignore` has no strength
        if isinstance(left, Linear):
            return Linear(subtract(left.weights, negatives, weight), kept_terms(left))
        vector = positive_weights(left)
        change = add(subtract(vector, negatives, weight), vector, -1.0)
        return summed(*summands(left), Linear({term: w for term, w in change.items() if w < 0}, kept=()))


def _vector(node: ScoringNode) -> SparseVector:
    """The vector that stands for a query where an operator needs a vector."""
    return node.weights if isinstance(node, Linear) else positive_weights(node)


def united(name: Operator, children: Sequence[ScoringNode]) -> ScoringNode:
    """A union: Eq. 9 or 10 if all children are vectors, otherwise the sum or the maximum of their scores.

    ``dismax`` always takes the maximum of the scores. It is not in the paper; Lucene has it as DisjunctionMaxQuery.
    As in Lucene, a tie-breaker is added; for vectors it is a share of their ``maxpool``.
    """
    vectors = [child.weights for child in children if isinstance(child, Linear)]
    if len(vectors) == len(children) and (combined := UNION.function(name)):
        return Linear(combined(vectors), kept_terms(*children))
    nonempty = tuple(child for child in children if any(leaf_vectors(child)))
    if len(nonempty) < 2:
        return nonempty[0] if nonempty else Linear({})
    if name == "dismax" and len(vectors) == len(children):
        return summed(Max(nonempty), Linear(scale(max_pool(vectors), DISMAX_POOLED), kept_terms(*children)))
    return Sum(nonempty) if name == "addition" else Max(nonempty)
