r"""From expressions to scoring trees, bottom-up.

If all operands are vectors and the operator works on vectors, the result is a vector, one linear leaf. Otherwise it is
a tree, with these approximations:

- ∪: ``maxpool`` of trees is the maximum of the scores, as with ``dismax``. ``addition`` adds the scores.
- ∩: an operand that is a tree takes part with its positive weights.
- \: a left side that is a tree stays as it is, and a linear part is added to it: see ``_Composer._subtracted``. Only
  ``damped`` multiplies the score of any tree.
- \: an excluded conjunction of ``cpt`` is subtracted as a product, so documents about one operand alone keep their
  score. ``orthogonal`` takes it by its positive weights.
- A \ (B \ C) is (A \ B) ∪ (A ∩ C), by the maximum of the scores, up to ``MOST_DISJUNCTS``: see ``disjuncts``.
- A maximum of scores over a negation takes conjunctions of ``cpt+maxpool`` by ``cpt`` alone. The maxpool part scores
  documents about one operand, and would lift those that the negation lowers.

An atom whose terms are all unknown to the encoder is an empty vector. It empties a conjunction of ``cpt``. Of a
conjunction of ``cpt+maxpool`` it leaves the maxpool part, so documents about the other operands are still found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pyserini_compneg.compose.difference import VECTOR_DIFFERENCES
from pyserini_compneg.compose.intersection import VECTOR_INTERSECTIONS, cpt_operands
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    conjunction,
    disjuncts,
    verbalised,
    without_differences,
)
from pyserini_compneg.compose.scoring import (
    Damped,
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
from pyserini_compneg.expression import Atom, Expression, Union, atoms, format_expression
from pyserini_compneg.terminal import shown
from pyserini_compneg.vectors import (
    SparseVector,
    add,
    checked,
    is_pseudo_term,
    max_pool,
    positive_part,
    scale,
    without_terms,
)

BestScore: TypeAlias = Callable[[ScoringNode], float]
"""The best score that a query has in an index, 0 where no document matches."""

_logger = logging.getLogger(__name__)


class QueryEncoder(Protocol):
    """Turns texts into sparse vectors."""

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text, in the order of the texts; the other texts of the batch do not change it."""


def scoring_trees(
    expressions: Sequence[Expression],
    encoder: QueryEncoder,
    operators: Operators = DEFAULT_OPERATORS,
    best_score: BestScore | None = None,
) -> list[ScoringNode]:
    """The scoring tree of each expression; its weights are not yet rounded.

    Every distinct text is encoded once, all in one batch.

    Args:
        expressions: The queries.
        encoder: Gives the vectors of texts.
        operators: The operators of union, intersection and difference.
        best_score: Gives the best score of a query in the index that will be searched; ``damped`` needs it.

    Raises:
        EncodingError: A vector with a weight that is no finite number or with a reserved term, or vectors missing.
        CompositionError: Weights beyond the limits of exact arithmetic, or ``damped`` without an index.
    """
    rewritten = [verbalised(expression, operators) for expression in expressions]
    texts = list(dict.fromkeys(text for expression in rewritten for text in atoms(expression)))
    composer = _Composer(operators, atom_vectors(texts, encoder), best_score)
    return [composer.compose(expression) for expression in rewritten]


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
        best_score: Asks the index; None if there is none.
    """

    operators: Operators
    vectors: Mapping[str, SparseVector]
    best_score: BestScore | None

    def compose(self, expression: Expression, strict: bool = False) -> ScoringNode:
        """The scoring tree.

        Args:
            expression: What is asked.
            strict: Whether a conjunction of ``cpt+maxpool`` is one of ``cpt``.
        """
        match expression:
            case Atom(text):
                return Linear(self.vectors[text])
            case Union():
                members = alternatives(expression)
                strict = self._lowers and any(conjunction(member).excluded for member in members)
                strict = strict and self.operators.union != "addition"
                return self._union([self.compose(member, strict) for member in members], self.operators.union)
        whole = conjunction(expression)
        parts = disjuncts(whole) if self._lowers else (Conjunction(whole.kept),)
        if len(parts) == 1:
            return self._conjunction(parts[0], strict)
        return self._union([self._conjunction(part, strict=True) for part in parts], "dismax")

    @property
    def _lowers(self) -> bool:
        """Whether an excluded part lowers any score."""
        return self.operators.strength > 0

    def _conjunction(self, parts: Conjunction, strict: bool) -> ScoringNode:
        kept = [self.compose(member) for member in parts.kept]
        name = self.operators.intersection
        name = "cpt" if strict and name == "cpt+maxpool" else name
        positive = self._intersection(kept, name) if len(kept) > 1 else kept[0]
        if not parts.excluded or not any(leaf_vectors(positive)):  # nothing to take away, or nothing to take it from
            return positive
        result = self._difference(positive, parts)
        if is_empty(result) and not is_empty(positive):
            _logger.warning(
                "NOT (%s) leaves no positive term of %s; choose another --difference",
                self.operators.difference,
                " AND ".join(repr(format_expression(member)) for member in parts.kept),
            )
        return result

    def _union(self, children: list[ScoringNode], name: str) -> ScoringNode:
        """Eq. 9 or 10 if all children are vectors, otherwise the sum or the maximum of their scores.

        ``dismax`` always takes the maximum of the scores. It is not in the paper; Lucene has it as DisjunctionMaxQuery.
        """
        vectors = [child.weights for child in children if isinstance(child, Linear)]
        if name in VECTOR_UNIONS and len(vectors) == len(children):
            return Linear(VECTOR_UNIONS[name](vectors))
        nonempty = tuple(child for child in children if any(leaf_vectors(child)))
        if len(nonempty) < 2:
            return nonempty[0] if nonempty else Linear({})
        return Sum(nonempty) if name == "addition" else Max(nonempty)

    def _intersection(self, children: list[ScoringNode], name: str) -> ScoringNode:
        """Combined Pseudo-Terms in their factored form, Eq. 6 to 8, or one of the paper's ablations."""
        vectors = [_vector(child) for child in children]
        if name in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[name](vectors))
        pooled = Linear(scale(max_pool(vectors), self.operators.maxpool_weight if name == "cpt+maxpool" else 0.0))
        operands = [positive_part(vector) for vector in vectors]
        return _sum(self._product(operands), pooled) if all(operands) else pooled

    def _product(self, operands: Sequence[SparseVector], weight: float = 1.0) -> Product:
        """The joint occurrence of the operands' heaviest terms."""
        heaviest = tuple(cpt_operands(operands, self.operators.cpt_terms))
        if self.operators.intersection == "cpt-l2":
            return Product(heaviest, 2 / len(operands), root=2, weight=weight)
        return Product(heaviest, weight=weight)

    def _difference(self, left: ScoringNode, parts: Conjunction) -> ScoringNode:
        r"""A \ B₁ \ … \ Bₙ, Eq. 5 and the other operators; ``left`` is A, composed of the parts that are kept."""
        name, weight = self.operators.difference, self.operators.strength
        kept = (self.vectors[text] for member in parts.kept for text in atoms(without_differences(member)))
        a = {term for vector in kept for term in vector}
        negatives = [self._negative(member, a) for member in parts.excluded]
        vectors = [negative[0] for negative in negatives if len(negative) == 1]
        conjunctions = [negative for negative in negatives if len(negative) > 1]
        if name == "damped":
            return self._damped(left, without_terms(positive_part(max_pool(vectors)), a), conjunctions)
        if name == "nrf" and conjunctions:  # the mean is that of all negatives
            weight /= sum(map(bool, vectors)) + len(conjunctions)
            name = "constant"
        left = self._subtracted(left, a, name, vectors, weight)
        products = (self._product(operands, -weight) for operands in conjunctions)
        return Sum((*summands(left), *products)) if conjunctions else left

    def _damped(
        self, left: ScoringNode, b: SparseVector, conjunctions: Sequence[tuple[SparseVector, ...]]
    ) -> ScoringNode:
        """A, damped by each part B*: by the vector, and by each conjunction."""
        if self.best_score is None:
            raise CompositionError("damped needs an index, for the best score of the excluded part; name one (--index)")
        parts: list[Linear | Product] = [Linear(b)] if b else []
        parts += [self._product(operands) for operands in conjunctions]
        for part in parts:
            if (best := self.best_score(part)) > 0:
                left = Damped(left, part, best, self.operators.strength)
        return left

    def _negative(self, expression: Expression, a: AbstractSet[str]) -> tuple[SparseVector, ...]:
        """What is taken away for an excluded part: one vector, or the operands of a product.

        ``disentangled`` and ``damped`` leave the terms of A out of a product's operands, as Eq. 5 does for a vector. An
        operand that has no other term drops out: documents about A have it anyway.
        """
        name = self.operators.intersection
        if isinstance(expression, Atom):
            return (self.vectors[expression.text],)
        operands = [_vector(self.compose(member)) for member in conjunction(expression).kept]
        if name in VECTOR_INTERSECTIONS:
            return (VECTOR_INTERSECTIONS[name](operands),)
        operands = [positive_part(operand) for operand in operands]
        if not all(operands):
            return ()
        if self.operators.difference == "orthogonal":
            return (max_pool(operands),)
        if self.operators.difference in ("disentangled", "damped"):
            operands = [operand for operand in (without_terms(operand, a) for operand in operands) if operand]
        return tuple(operands)

    def _subtracted(
        self, left: ScoringNode, a: AbstractSet[str], name: str, negatives: Sequence[SparseVector], weight: float
    ) -> ScoringNode:
        """The operator on a vector; to a tree it adds what it would change in a vector that stands for the tree.

        For ``disentangled`` that vector has all terms of the atoms in A, also those that a conjunction did not take.
        For ``orthogonal`` it has the tree's positive weights. The other operators subtract the same from any vector.
        """
        subtract = VECTOR_DIFFERENCES[name]
        if isinstance(left, Linear):
            return Linear(subtract(left.weights, negatives, weight))
        stand_in: SparseVector = {}
        if name == "disentangled":
            stand_in = dict.fromkeys(a, 1.0)
        elif name == "orthogonal":
            stand_in = positive_weights(left)
        return _sum(left, Linear(add(subtract(stand_in, negatives, weight), stand_in, -1.0)))


def _vector(node: ScoringNode) -> SparseVector:
    """The vector that stands for a query where an operator needs one."""
    return node.weights if isinstance(node, Linear) else positive_weights(node)


def _sum(node: ScoringNode, linear: Linear) -> ScoringNode:
    """The node with a linear part added to it; a sum stays flat, and an empty part is left out."""
    return Sum((*summands(node), linear)) if linear.weights else node
