r"""From expressions to scoring trees, bottom-up.

If all operands are vectors and the operator works on vectors, the result is a vector, one linear leaf. Otherwise it is
a tree, with these approximations:

- ∪: ``maxpool`` of trees is the maximum of the scores, as with ``dismax``. ``addition`` adds the scores.
- ∩: an operand that is a tree takes part with its positive weights.
- \: a left side that is a tree stays as it is, and a linear part is added to it: see ``_Composer._subtracted``. Only
  ``damped`` multiplies the score of any tree.
- \: an excluded conjunction of ``cpt`` is subtracted as a product, so documents about one operand alone keep their
  score. ``orthogonal`` takes it by its positive weights. That of ``cpt-pairs`` has all pairs, as that of ``cpt``.
- A \ (B \ C) is (A \ B) ∪ (A ∩ C), by the maximum of the scores, up to ``MOST_DISJUNCTS``: see ``disjuncts``.
- NOT! excludes by the terms of its right side that the left side lacks: see ``_Composer._excluding``.
- AND! requires a distinguishing term of each operand: see ``_Composer._requiring``.
- A conjunction of ``cpt+maxpool`` is one of ``cpt`` beside an alternative that lowers documents about one of its
  operands: see ``_Composer._narrowed``.

An atom whose terms are all unknown to the encoder is an empty vector. It empties a conjunction of ``cpt``. Of a
conjunction of ``cpt+maxpool`` it leaves the maxpool part, so documents about the other operands are still found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from pyserini_compneg.compose.difference import VECTOR_DIFFERENCES
from pyserini_compneg.compose.intersection import (
    DISENTANGLED_CPT_WEIGHT,
    VECTOR_INTERSECTIONS,
    cpt_operands,
    distinguishing_terms,
    heaviest_tuples,
    own_terms,
    pairwise,
)
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.quantisation import kept_terms
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    check_exclusions,
    conjunction,
    disjuncts,
    may_undo,
    verbalised,
    without_differences,
    without_exclusions,
)
from pyserini_compneg.compose.scoring import (
    Damped,
    Excluding,
    Linear,
    Max,
    Product,
    ScoringNode,
    Sum,
    is_empty,
    leaf_vectors,
    positive_weights,
    summands,
)
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.errors import CompositionError, EncodingError
from pyserini_compneg.expression import Atom, Expression, Filter, Union, atoms, format_expression, leaves
from pyserini_compneg.gathered import gathered_warnings, warn_of
from pyserini_compneg.terminal import shown
from pyserini_compneg.vectors import (
    SparseVector,
    add,
    checked,
    is_pseudo_term,
    max_pool,
    positive_part,
    scale,
    top_terms,
    without_terms,
)

TopScores: TypeAlias = Callable[[ScoringNode, int], Sequence[float]]
"""The scores of the documents that are best for a query in an index, best first, and at most that many."""

MOST_ATOMS = 20_000
"""The most atoms of an expression, repeated ones included. Time and memory grow with their number, no faster."""

_POOLED = {"cpt+maxpool": 1.0, "disentangled": DISENTANGLED_CPT_WEIGHT}
"""The intersections that add ``maxpool`` to joint occurrence, with the weight β of the latter."""

_DISENTANGLED = ("disentangled", "damped")
"""The differences that leave the terms of A out of what they take away."""

_TOP = 6
"""The documents that tell how specific an exclusion is, and how many wanted ones it may not remove from a first page.

This number and the next two were chosen on the dev splits of ExcluIR, NegConstraint and FilmSets.
"""

_BROAD = 0.8
"""What is excluded is a class of documents if the last of ``_TOP`` has this share of the best score, or more."""

_CONTEXT = 0.25
_BROAD_CONTEXT = 0.1
"""What all parts of a text count, excluded ones included, when the query that was read from it counts 1. The second
is for what is excluded as a class, whose documents the first would find."""


class QueryEncoder(Protocol):
    """Turns texts into sparse vectors."""

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text, in the order of the texts; the other texts of the batch do not change it."""


def scoring_trees(
    expressions: Sequence[Expression],
    encoder: QueryEncoder,
    operators: Operators = DEFAULT_OPERATORS,
    top_scores: TopScores | None = None,
    is_read: Sequence[bool] = (),
) -> list[ScoringNode]:
    """The scoring tree of each expression; its weights are not yet rounded.

    Every distinct text is encoded once, all in one batch.

    Args:
        expressions: The queries.
        encoder: Gives the vectors of texts.
        operators: The operators of union, intersection and difference.
        top_scores: Gives the best scores of a query in the index that will be searched; ``damped`` needs it.
        is_read: Whether each expression was read from a text; none was by default. Only ``damped`` uses it, where
            something is excluded from the whole expression.

    Raises:
        EncodingError: A vector with a weight that is no finite number or with a reserved term, or vectors missing.
        CompositionError: Weights beyond the limits of exact arithmetic, more than ``MOST_ATOMS`` atoms, NOT! or AND!
            where it cannot decide what is found, or an operator that needs an index without one.
    """
    for expression in expressions:
        if (count := sum(1 for _ in leaves(expression))) > MOST_ATOMS:
            limit = f"an expression may have {MOST_ATOMS:,} atoms, this one has {count:,}"
            raise CompositionError(f"{limit}; split it into several queries")
        check_exclusions(expression)
    rewritten = [verbalised(expression, operators) for expression in expressions]
    texts = [text for expression in rewritten for text in atoms(expression)]
    vectors = atom_vectors(list(dict.fromkeys(texts)), encoder)
    composer = _Composer(operators, vectors, top_scores)
    contexts = [
        atoms(expression) if read and not isinstance(expression, Union) else ()
        for expression, read in zip(rewritten, is_read or [False] * len(rewritten), strict=True)
    ]
    with gathered_warnings():
        trees = [
            replace(composer, context=context).compose(expression)
            for expression, context in zip(rewritten, contexts, strict=True)
        ]
        _warn_of_unknown_atoms(rewritten, trees, vectors)
        said = f"NOT ({operators.difference}) takes away all its positive terms; choose another --difference"
        names = [shown(format_expression(expression)) for expression in rewritten]
        emptied = {
            name: name
            for name, expression, tree in zip(names, rewritten, trees, strict=True)
            if is_empty(tree) and not is_empty(composer.compose(without_differences(expression)))
        }
        warn_of("query", "queries", said, emptied, names)
    return trees


def _warn_of_unknown_atoms(
    expressions: Sequence[Expression], trees: Sequence[ScoringNode], vectors: Mapping[str, SparseVector]
) -> None:
    """Warns of atoms without a known term.

    A query that finds nothing at all is the caller's to report, unless AND! empties it: the other atoms are known.
    """
    unknown: dict[str, str] = {}
    for expression, tree in zip(expressions, trees, strict=True):
        texts = atoms(expression)
        missing = [text for text in texts if not vectors[text] and text not in unknown]
        is_strict = any(conjunction(member).required for member in alternatives(expression))
        is_emptied = is_strict and any(vectors[text] for text in texts)
        if missing and (is_emptied or not is_empty(tree)):
            name = shown(format_expression(expression))
            unknown |= {text: f"{shown(text)} (query {name})" for text in missing}
    warn_of("atom", "atoms", "no term that the encoder knows, so it matches no document", unknown, vectors)


def atom_vectors(texts: Sequence[str], encoder: QueryEncoder) -> dict[str, dict[str, float]]:
    """The vector of each text, all encoded in one batch and checked.

    Raises:
        EncodingError: As for :func:`scoring_trees`.
    """
    vectors = encoder.encode_batch(list(texts)) if texts else []
    if not isinstance(vectors, Sequence) or not all(isinstance(vector, Mapping) for vector in vectors):
        raise EncodingError(f"the encoder must give a list of mappings of terms to weights, got {shown(vectors)}")
    if len(vectors) != len(texts):
        raise EncodingError(f"the encoder must give a vector for each text, got {len(vectors)} for {len(texts)} texts")
    for text, vector in zip(texts, vectors, strict=True):
        if reserved := [term for term in vector if isinstance(term, str) and is_pseudo_term(term)]:
            form = "a∩b for pairs and ¬t for complements"
            raise EncodingError(f"atom {text!r}: the term {reserved[0]!r} is reserved, {form}; leave it out")
    return {text: checked(vector, f"atom {text!r}") for text, vector in zip(texts, vectors, strict=True)}


@dataclass(frozen=True, slots=True)
class _Composer:
    """Composes expressions without vanilla operators.

    Attributes:
        operators: The operators of union, intersection and difference.
        vectors: The vector of each atom's text.
        top_scores: Asks the index; None if there is none.
        context: The atoms that count as context in ``damped``; none if the expression was not read from a text.
    """

    operators: Operators
    vectors: Mapping[str, SparseVector]
    top_scores: TopScores | None
    context: Sequence[str] = ()

    def compose(self, expression: Expression) -> ScoringNode:
        """The scoring tree."""
        name = self.operators.intersection
        match expression:
            case Atom(text):
                return Linear(self.vectors[text])
            case Union():
                members = [conjunction(member) for member in alternatives(expression)]
                narrowed = "cpt" if name in _POOLED and self.operators.union != "addition" else name
                names = self._narrowed(members, name, narrowed)
                return self._union(list(map(self._set, members, names)), self.operators.union)
        return self._set(conjunction(expression), name)

    def _narrowed(self, members: Sequence[Conjunction], name: str, narrowed: str) -> list[str]:
        """The intersection for each alternative, another one where it would lift what another alternative lowers.

        The maxpool part of ``cpt+maxpool`` scores documents about one operand, also where they are to be lowered.
        """
        weightless = [replace(member, excluded=()) for member in members]
        return [narrowed if undoes else name for undoes in may_undo(members if self.operators.strength else weightless)]

    def _set(self, whole: Conjunction, name: str) -> ScoringNode:
        """A conjunction under the intersection of that name; what is wanted again meets it by joint occurrence."""
        parts = disjuncts(whole) if self.operators.strength else (Conjunction(whole.kept),)
        children = list(map(self._conjunction, parts, self._narrowed(parts, name, "cpt")))
        node = self._excluding(self._union(children, "dismax") if len(children) > 1 else children[0], whole)
        return self._requiring(node, whole)

    def _excluding(self, node: ScoringNode, whole: Conjunction) -> ScoringNode:
        """The node without the documents of the barred parts."""
        if not whole.barred or not any(leaf_vectors(node)):
            return node
        a = self._terms(whole.kept)
        barred = [(part, 0.0) if isinstance(part, Filter) else self._barred(part, a) for part in whole.barred]
        known = [(part, limit) for part, limit in barred if isinstance(part, Filter) or not is_empty(part)]
        return Excluding(node, *map(tuple, zip(*known, strict=True))) if known else node

    def _requiring(self, node: ScoringNode, whole: Conjunction) -> ScoringNode:
        """The node for documents that have every operand of AND!, by one of the terms that distinguish the operand.

        What an operand excludes has no part in its terms. An operand without a positive term empties the conjunction.
        """
        required = []
        for group in whole.required:
            wanted = [without_exclusions(without_differences(operand)) for operand in group]
            required += distinguishing_terms([_vector(self.compose(one)) for one in wanted], self.operators.cpt_terms)
        if not required or not any(leaf_vectors(node)):
            return node
        if not all(required):
            return Linear({})
        parts = tuple(Linear(dict.fromkeys(terms, 1.0)) for terms in required)
        return replace(node, required=parts) if isinstance(node, Excluding) else Excluding(node, required=parts)

    def _barred(self, expression: Expression, a: AbstractSet[str]) -> tuple[Linear | Product, float]:
        """What a document is excluded by, and the score from which it is.

        The terms of A do not count, or ``films NOT! war films`` would find nothing. A part of which A has all terms
        excludes nothing, with a warning.
        """
        members = conjunction(expression).kept
        if self.operators.exclusion == "all" and any(isinstance(member, Union) for member in members):
            raise CompositionError(
                f"NOT! by all terms takes no OR in an AND, {format_expression(expression)!r}; write it out"
            )
        operands = [positive_part(_vector(self.compose(member))) for member in members]
        if not all(operands):
            return Linear({}), 0.0
        _warn_if_contained(expression, operands, a, "NOT! excludes")
        operands = [own for own in (without_terms(operand, a) for operand in operands) if own]
        if not operands:
            return Linear({}), 0.0
        how = self.operators.exclusion
        if isinstance(how, str):
            heaviest = [top_terms(operand, self.operators.cpt_terms) for operand in operands]
            operands = [dict.fromkeys(terms, 1.0) for terms in heaviest]
            if how == "all":
                operands = [{term: 1.0} for term in dict.fromkeys(term for terms in heaviest for term in terms)]
        part = Product(tuple(operands)) if len(operands) > 1 else Linear(operands[0])
        if isinstance(how, str):
            return part, 0.0
        if self.top_scores is None:
            raise CompositionError(
                "NOT! needs an index, for best scores; name one (--index), or --exclusion any or all"
            )
        return part, how * max((0.0, *self.top_scores(part, 1)))

    def _terms(self, kept: Sequence[Expression]) -> set[str]:
        """The terms of all atoms of the parts that are kept."""
        return {term for member in kept for text in atoms(without_differences(member)) for term in self.vectors[text]}

    def _conjunction(self, parts: Conjunction, name: str) -> ScoringNode:
        """The parts that are kept, under the intersection of that name, without those that are excluded."""
        inside = replace(self, context=())
        kept = [inside.compose(member) for member in parts.kept]
        positive = self._intersection(kept, name) if len(kept) > 1 else kept[0]
        if not parts.excluded or not any(leaf_vectors(positive)):  # nothing to take away, or nothing to take it from
            return positive
        return self._difference(positive, parts)

    def _union(self, children: list[ScoringNode], name: str) -> ScoringNode:
        """Eq. 9 or 10 if all children are vectors, otherwise the sum or the maximum of their scores.

        ``dismax`` always takes the maximum of the scores. It is not in the paper; Lucene has it as DisjunctionMaxQuery.
        """
        vectors = [child.weights for child in children if isinstance(child, Linear)]
        if name in VECTOR_UNIONS and len(vectors) == len(children):
            return Linear(VECTOR_UNIONS[name](vectors), kept_terms(*children))
        nonempty = tuple(child for child in children if any(leaf_vectors(child)))
        if len(nonempty) < 2:
            return nonempty[0] if nonempty else Linear({})
        return Sum(nonempty) if name == "addition" else Max(nonempty)

    def _intersection(self, children: list[ScoringNode], name: str) -> ScoringNode:
        """Combined Pseudo-Terms in their factored form, Eq. 6 to 8, or one of the paper's ablations."""
        vectors = [_vector(child) for child in children]
        if name in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[name](vectors), kept_terms(*children))
        pooled = Linear(max_pool(vectors) if name in _POOLED else {}, kept_terms(*children))
        operands = [positive_part(vector) for vector in vectors]
        if not all(operands):
            return pooled
        if name == "disentangled":
            pairs = self._own_pairs(operands)
            return Sum((*pairs, pooled)) if pairs else pooled
        if self.operators.intersection == "cpt-pairs":
            products = tuple(map(Product, heaviest_tuples(operands, self.operators.cpt_terms)))
            return Sum(products) if len(products) > 1 else products[0]
        product = self._product(operands)
        if weight := _POOLED.get(self.operators.intersection):
            product = replace(product, weight=self.operators.cpt_weight or weight)
        return _sum(product, pooled)

    def _own_pairs(self, operands: Sequence[SparseVector]) -> list[Product]:
        """β times the joint occurrence of two operands by the terms that each has alone, for n operands over n − 1."""
        own = cpt_operands(own_terms(operands), self.operators.cpt_terms)
        weight = (self.operators.cpt_weight or DISENTANGLED_CPT_WEIGHT) / max(1, len(own) - 1)
        return [Product(pair, weight=weight) for pair in pairwise(own)]

    def _product(self, operands: Sequence[SparseVector]) -> Product:
        """The joint occurrence of the operands' heaviest terms."""
        heaviest = tuple(cpt_operands(operands, self.operators.cpt_terms))
        if self.operators.intersection == "cpt-l2":
            return Product(heaviest, 2 / len(operands), root=2)
        return Product(heaviest)

    def _difference(self, left: ScoringNode, parts: Conjunction) -> ScoringNode:
        r"""A \ B₁ \ … \ Bₙ, Eq. 5 and the other operators; ``left`` is A, composed of the parts that are kept."""
        name, weight = self.operators.difference, self.operators.strength
        a = self._terms(parts.kept)
        negatives = [self._negative(member, a) for member in parts.excluded]
        if name == "damped":
            return self._damped(left, negatives, a)
        vectors = [negative.weights for negative in negatives if isinstance(negative, Linear)]
        products = [negative for negative in negatives if isinstance(negative, Product)]
        if name == "nrf" and products:  # the mean is that of all negatives
            weight /= sum(map(bool, vectors)) + len(products)
            name = "constant"
        left = self._subtracted(left, a, name, vectors, weight)
        return Sum((*summands(left), *(replace(product, weight=-weight) for product in products))) if products else left

    def _damped(self, left: ScoringNode, negatives: Sequence[Linear | Product], a: AbstractSet[str]) -> ScoringNode:
        """A, damped by that part B* which a document is most about.

        If B* is specific, the best documents of A keep about the score of the last of them. The parts of a text
        that was read are context: they count a little, too.
        """
        if self.top_scores is None:
            raise CompositionError("damped needs an index, for the best score of the excluded part; name one (--index)")
        parts = [
            Linear(without_terms(positive_part(negative.weights), a)) if isinstance(negative, Linear) else negative
            for negative in negatives
        ]
        asked = [(part, self.top_scores(part, _TOP)) for part in parts if not is_empty(part)]
        found = [(part, scores) for part, scores in asked if scores and scores[0] > 0]
        if not found:
            return left
        lowering, top = zip(*found, strict=True)
        is_specific = all(len(scores) < _TOP or scores[-1] < _BROAD * scores[0] for scores in top)
        if self.context:
            words = max_pool([self.vectors[text] for text in self.context])
            left = _sum(left, Linear(scale(words, _CONTEXT if is_specific else _BROAD_CONTEXT), kept=()))
        wanted = self.top_scores(left, _TOP) if is_specific else ()
        floor = max(0.0, wanted[-1]) if len(wanted) == _TOP else 0.0  # all of fewer ones are on a first page anyway
        return Damped(left, lowering, tuple(scores[0] for scores in top), self.operators.strength, floor)

    def _negative(self, expression: Expression, a: AbstractSet[str]) -> Linear | Product:
        """What is taken away for an excluded part: a vector, or a product for a conjunction of ``cpt``.

        ``disentangled`` and ``damped`` leave the terms of A out of a product's operands, as Eq. 5 does for a vector. An
        operand of which A has all terms is taken as given and drops out.
        """
        name = self.operators.intersection
        leaves_out = self.operators.difference in _DISENTANGLED
        operands = [_vector(self.compose(member)) for member in conjunction(expression).kept]
        if leaves_out and all(operands):
            _warn_if_contained(expression, operands, a, "NOT lowers")
        if len(operands) == 1:
            return Linear(*operands)
        if name in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[name](operands))
        operands = [positive_part(operand) for operand in operands]
        if not all(operands):
            return Linear({})
        if self.operators.difference == "orthogonal":
            return Linear(max_pool(operands))
        if leaves_out:
            operands = [operand for operand in (without_terms(operand, a) for operand in operands) if operand]
        return self._product(operands) if len(operands) > 1 else Linear(dict(*operands))

    def _subtracted(
        self, left: ScoringNode, a: AbstractSet[str], name: str, negatives: Sequence[SparseVector], weight: float
    ) -> ScoringNode:
        """The operator on a vector; to a tree it adds what it would change in a vector that stands for the tree.

        For ``disentangled`` that vector has all terms of the atoms in A, also those that a conjunction did not take.
        For ``orthogonal`` it has the tree's positive weights. The other operators subtract the same from any vector.
        """
        subtract = VECTOR_DIFFERENCES[name]
        if isinstance(left, Linear):
            return Linear(subtract(left.weights, negatives, weight), kept_terms(left))
        stand_in: SparseVector = {}
        if name == "disentangled":
            stand_in = dict.fromkeys(a, 1.0)
        elif name == "orthogonal":
            stand_in = positive_weights(left)
        return _sum(left, Linear(add(subtract(stand_in, negatives, weight), stand_in, -1.0), kept=()))


def _warn_if_contained(
    expression: Expression, operands: Sequence[SparseVector], a: AbstractSet[str], what: str
) -> None:
    """Warns of an excluded part if what is wanted, with the terms ``a``, has all terms of its operands."""
    name = shown(format_expression(expression))
    is_contained = not any(without_terms(operand, a) for operand in operands)
    said = f"what is wanted has all its terms, so {what} nothing by it"
    warn_of("part", "parts", said, {name: name} if is_contained else {}, [name])


def _vector(node: ScoringNode) -> SparseVector:
    """The vector that stands for a query where an operator needs one."""
    return node.weights if isinstance(node, Linear) else positive_weights(node)


def _sum(node: ScoringNode, linear: Linear) -> ScoringNode:
    """The node with a linear part added to it; a sum stays flat, and an empty part is left out."""
    return Sum((*summands(node), linear)) if linear.weights else node
