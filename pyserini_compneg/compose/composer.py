r"""Composes expressions into scoring trees, bottom-up, by the definitions of docs/reference/algebra.md.

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
from dataclasses import dataclass, field, replace
from functools import partial

from pyserini_compneg.compose.answers import FIRST_PAGE, Answers, TopScores, answered, for_each
from pyserini_compneg.compose.atom_vectors import QueryEncoder, atom_vectors, warn_of_unknown_atoms
from pyserini_compneg.compose.difference import VECTOR_DIFFERENCES
from pyserini_compneg.compose.intersection import (
    DISENTANGLED_CPT_WEIGHT,
    VECTOR_INTERSECTIONS,
    cpt_operands,
    heaviest_tuples,
    own_terms,
    pairwise,
)
from pyserini_compneg.compose.lowering import lowered
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, EXCLUSION_SHARE, Operators
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    check_exclusions,
    conjunction,
    verbalised,
    without_differences,
)
from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.compose.trees import is_empty, kept_terms, leaf_vectors, nodes, positive_weights, summands
from pyserini_compneg.compose.union import DISMAX_POOLED, VECTOR_UNIONS
from pyserini_compneg.compose.words import atom_words, clauses, required_words, worded_atoms
from pyserini_compneg.expression import (
    Atom,
    Expression,
    Filter,
    Union,
    atoms,
    format_expression,
    leaves,
)
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.progress import gathered_warnings, warn_of
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import (
    SparseVector,
    add,
    max_pool,
    positive_part,
    scale,
    without_terms,
)

MOST_ATOMS = 20_000
"""The most atoms of an expression, repeated ones included. Time and memory grow linearly with the atoms."""

_DISENTANGLED, _ORTHOGONAL = ("disentangled", "damped"), ("orthogonal", "elementwise")
"""The differences that remove the terms of A from the excluded part."""

_BROAD = 0.8
"""An excluded part is a class of documents if its tenth best score is at least this share of its best score.

This number and the next three were chosen on several dev sets together; see docs/reference/operators.md.
"""

_FLOOR = 4
"""The rank in A whose score is the floor of damping, unless a class is excluded."""

_CONTEXT = 0.25
_BROAD_CONTEXT = 0.1
"""The weight of all parts of a text, including excluded parts, beside the query read from it, which has the weight 1.
The smaller weight applies if a class is excluded: the larger weight would find its documents."""


def scoring_trees(
    expressions: Sequence[Expression],
    encoder: QueryEncoder,
    operators: Operators = DEFAULT_OPERATORS,
    top_scores: TopScores | None = None,
    is_read: Sequence[bool] = (),
    signed: bool = False,
) -> list[ScoringNode]:
    """The scoring tree of each expression; its weights are not yet rounded.

    Every distinct text is encoded once, all in one batch. ``is_read`` states for each expression whether it was read
    from a text. ``damped`` uses this if a part is excluded from the whole expression. ``signed``: the index keeps
    negative weights of documents.
    """
    for expression in expressions:
        if (count := sum(1 for _ in leaves(expression))) > MOST_ATOMS:
            what = f"an expression may have {MOST_ATOMS:,} atoms, this one has {count:,}"
            raise QueryError(what, remedy="split it into several queries")
        check_exclusions(expression)
    rewritten = [verbalised(expression, operators) for expression in expressions]
    texts = [text for expression in rewritten for text in atoms(expression)]
    vectors = atom_vectors(list(dict.fromkeys(texts)), encoder)
    worded = list(dict.fromkeys(text for expression in rewritten for text in worded_atoms(expression)))
    words = atom_words(worded, encoder, vectors)
    wordless = {text: shown(text) for text in worded if vectors[text] and not any(words[text].values())}
    warn_of("atom", "atoms", "the index has none of its words, so no document has it", wordless, worded)
    composer = _Composer(operators, vectors, words, top_scores and Answers(top_scores), signed)
    contexts = [
        atoms(expression) if read and not isinstance(expression, Union) else ()
        for expression, read in zip(rewritten, is_read or [False] * len(rewritten), strict=True)
    ]
    with gathered_warnings():
        composers = [replace(composer, context=context) for context in contexts]
        compositions = [partial(one.compose, tree) for one, tree in zip(composers, rewritten, strict=True)]
        trees = answered(compositions, composer.answers)
        warn_of_unknown_atoms(rewritten, trees, vectors)
        said = f"NOT ({operators.difference}) removes all its positive terms; choose another --difference"
        names = [shown(format_expression(expression)) for expression in rewritten]
        emptied = {
            name: name
            for name, expression, tree in zip(names, rewritten, trees, strict=True)
            if is_empty(tree) and not is_empty(composer.compose(without_differences(expression)))
        }
        warn_of("query", "queries", said, emptied, names)
    return trees


@dataclass(frozen=True, slots=True)
class _Composer:
    """Composes expressions without vanilla operators."""

    operators: Operators
    vectors: Mapping[str, SparseVector]  # the vector of each atom's text
    words: Mapping[str, SparseVector]  # of it, the words, if NOT! or AND! needs them
    answers: Answers | None  # the index's answers, if there is an index
    signed: bool = False  # whether the wanted part is multiplied with negative weights of documents
    context: Sequence[str] = ()  # the atoms of the text that was read; `damped` adds them
    # Keyed by identity: a composition starts again with each answer of the index.
    done: dict[tuple[int, bool, bool], tuple[Expression, ScoringNode]] = field(default_factory=dict, compare=False)

    def compose(self, expression: Expression) -> ScoringNode:
        if isinstance(expression, Atom):
            return Linear(self.vectors[expression.text])
        key = id(expression), self.signed, bool(self.context)
        if key not in self.done:
            if isinstance(expression, Union):
                node = self._union(for_each(self.compose, alternatives(expression)))
            else:
                node = self._conjunction(conjunction(expression))
            self.done[key] = expression, node  # keeps the expression alive, so that no other object gets its identity
        return self.done[key][1]

    def _conjunction(self, whole: Conjunction) -> ScoringNode:
        """The intersection of the kept parts, without the excluded parts."""
        inside = replace(self, context=())
        node = self._intersection(for_each(inside.compose, list(dict.fromkeys(whole.kept))))
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

    def _union(self, children: list[ScoringNode]) -> ScoringNode:
        """Eq. 9 or 10 if all children are vectors, otherwise the sum or the maximum of their scores.

        ``dismax`` always takes the maximum of the scores. It is not in the paper; Lucene has it as DisjunctionMaxQuery.
        As in Lucene, a tie-breaker is added; for vectors it is a share of their ``maxpool``.
        """
        name = self.operators.union
        vectors = [child.weights for child in children if isinstance(child, Linear)]
        if name in VECTOR_UNIONS and len(vectors) == len(children):
            return Linear(VECTOR_UNIONS[name](vectors), kept_terms(*children))
        nonempty = tuple(child for child in children if any(leaf_vectors(child)))
        if len(nonempty) < 2:
            return nonempty[0] if nonempty else Linear({})
        if name == "dismax" and len(vectors) == len(children):
            return _sum(Max(nonempty), Linear(scale(max_pool(vectors), DISMAX_POOLED), kept_terms(*children)))
        return Sum(nonempty) if name == "addition" else Max(nonempty)

    def _intersection(self, children: list[ScoringNode]) -> ScoringNode:
        """The operands' joint occurrence, Eq. 6 to 8, beside ``maxpool`` or alone, or one of the paper's ablations."""
        if len(children) == 1:
            return children[0]
        name, vectors = self.operators.intersection, [_vector(child) for child in children]
        if name in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[name](vectors), kept_terms(*children))
        operands = [positive_part(vector) for vector in vectors]
        if name == "disentangled":
            return _sum(*self._own_pairs(operands), Linear(max_pool(vectors), kept_terms(*children)))
        if not all(operands):
            return Linear({})
        if name == "cpt-pairs":
            return _sum(*map(Product, heaviest_tuples(operands, self.operators.cpt_terms)))
        heaviest = tuple(cpt_operands(operands, self.operators.cpt_terms))
        return Product(heaviest, 2 / len(operands), root=2) if name == "cpt-l2" else Product(heaviest)

    def _own_pairs(self, operands: Sequence[SparseVector]) -> list[Product]:
        """β / (n − 1) times the joint occurrence of n operands, each without the terms of the other operands."""
        own = cpt_operands(own_terms(operands), self.operators.cpt_terms)
        weight = (self.operators.cpt_weight or DISENTANGLED_CPT_WEIGHT) / max(1, len(own) - 1)
        return [Product(pair, weight=weight) for pair in pairwise(own)]

    def _difference(self, left: ScoringNode, a: AbstractSet[str], excluded: Sequence[Expression]) -> ScoringNode:
        r"""A \ B₁ \ … \ Bₙ, Eq. 5 and the other operators; ``left`` is A and ``a`` are its terms."""
        inside = replace(self, context=(), signed=False)  # excluded parts count positive impacts only
        parts = for_each(lambda member: inside._excluded(member, a), excluded)
        if self.operators.difference == "damped":
            return self._damped(left, parts)
        if self.operators.difference in _ORTHOGONAL:
            return self._subtracted(left, list(map(positive_weights, parts)))
        each = [one for part in parts for one in summands(part)]
        vectors = [positive_part(one.weights) for one in each if isinstance(one, Linear)]
        products = [one for one in each if isinstance(one, Product) and one.weight > 0]
        lowering = [replace(product, weight=-self.operators.strength) for product in products]
        return _sum(*summands(self._subtracted(left, vectors)), *lowering)

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
        if self.operators.intersection in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[self.operators.intersection](operands))
        return Product(tuple(cpt_operands(operands, self.operators.cpt_terms)))

    def _damped(self, left: ScoringNode, parts: Sequence[ScoringNode]) -> ScoringNode:
        """A, lowered for each document by the B* that scores it highest relative to the best score of that B*.

        Unless a class is excluded, the best documents of A keep about the score of the fourth document. If A was read
        from a text, all parts of the text are added with a small weight, as context.
        """
        if self.answers is None:
            remedy = "name one (--index), or choose another --difference, such as disentangled"
            raise QueryError("damped needs an index, for the best score of the excluded part", remedy=remedy)
        known = [part for part in parts if not is_empty(part)]
        answers = zip(known, self.answers.best(known), strict=True)
        found = [(part, best) for part, best in answers if best and best[0] > 0]
        if not found:
            return left
        lowering, bests = zip(*found, strict=True)
        is_class = any(len(best) == FIRST_PAGE and best[-1] >= _BROAD * best[0] for best in bests)
        # The context would find documents, too, so an excluding node gets none.
        if self.context and not any(isinstance(node, Excluding) for node in nodes(left)):
            words = max_pool([self.vectors[text] for text in self.context])
            context = Linear(scale(words, _BROAD_CONTEXT if is_class else _CONTEXT), kept=())
            left = _sum(*summands(left), context)
        floor = 0.0
        if not is_class and len(wanted := self.answers.best([lowered(left, signed=self.signed)])[0]) >= _FLOOR:
            floor = max(0.0, wanted[_FLOOR - 1])
        return Damped(left, lowering, tuple(best[0] for best in bests), self.operators.strength, floor)

    def _excluding(self, node: ScoringNode, whole: Conjunction) -> ScoringNode:
        """The node without the documents of the barred parts."""
        filters = [part for part in whole.barred if isinstance(part, Filter)]
        parts = [part for part in whole.barred if not isinstance(part, Filter)]
        if self.operators.exclusion == "words":
            barred = self._worded(parts)
        else:
            a = self._terms(whole.kept)
            barred = [one for one in for_each(lambda part: self._barred(part, a), parts) if not is_empty(one[0])]
        known = [*((part, 0.0) for part in filters), *barred]
        return Excluding(node, *map(tuple, zip(*known, strict=True))) if known else node

    def _worded(self, parts: Sequence[Expression]) -> list[tuple[Linear | Product, float]]:
        """Nodes that match documents with all words of an atom, each with the limit 0. One has all single words."""
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
        return [(node, 0.0) for node in ([Linear(single)] if single else []) + several]

    def _barred(self, expression: Expression, a: AbstractSet[str]) -> tuple[Linear | Product, float]:
        """The node by which NOT! excludes documents, and the score above which a document is excluded.

        The terms of A do not count, or ``films NOT! war films`` would find nothing.
        """
        operands = self._excluded_operands(expression, a, "NOT! excludes")
        how = self.operators.exclusion
        if how == "any":
            each = [dict.fromkeys(operand, 1.0) for operand in cpt_operands(operands, self.operators.cpt_terms)]
            return Product(tuple(each)) if len(each) > 1 else Linear(*each or [{}]), 0.0
        part = self._joint(operands)
        if is_empty(part):
            return part, 0.0
        if self.answers is None:
            raise QueryError("NOT! by scores needs an index", remedy="name one (--index), or --exclusion words or any")
        share = EXCLUSION_SHARE if isinstance(how, str) else how
        return part, share * max((0.0, *self.answers.best([part])[0]))

    def _subtracted(self, left: ScoringNode, negatives: Sequence[SparseVector]) -> ScoringNode:
        """Applies the operator to a vector. To a tree, adds what the operator would lower in the tree's vector."""
        name, weight = self.operators.difference, self.operators.strength
        subtract = VECTOR_DIFFERENCES[name]
        if isinstance(left, Linear):
            return Linear(subtract(left.weights, negatives, weight), kept_terms(left))
        vector = positive_weights(left)
        change = add(subtract(vector, negatives, weight), vector, -1.0)
        return _sum(*summands(left), Linear({term: w for term, w in change.items() if w < 0}, kept=()))


def _vector(node: ScoringNode) -> SparseVector:
    """The vector that stands for a query where an operator needs a vector."""
    return node.weights if isinstance(node, Linear) else positive_weights(node)


def _sum(*parts: ScoringNode) -> ScoringNode:
    """The sum of the parts; empty vectors are left out, and a sum of one is that part."""
    known = tuple(part for part in parts if not isinstance(part, Linear) or part.weights)
    if len(known) > 1:
        return Sum(known)
    return known[0] if known else Linear({})
