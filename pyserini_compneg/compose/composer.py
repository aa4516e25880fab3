r"""From expressions to scoring trees, bottom-up.

If all operands are vectors and the operator works on vectors, the result is a vector, one linear leaf. Otherwise it is
a tree, with these approximations:

- ∪: ``maxpool`` of trees is the maximum of the scores, as with ``dismax``. ``addition`` adds the scores.
- ∩: an operand that is a tree takes part with its positive weights.
- \: an excluded part takes part with its positive weights if it is a tree or holds a difference. A left side that is a
  tree stays as it is, and a linear part is added to it: see ``_Composer._penalty``. Only ``damped`` is exact.

An atom whose terms are all unknown to the encoder is an empty vector. It empties a conjunction of ``cpt``. Of a
conjunction of ``cpt+maxpool`` it leaves the maxpool part, so documents about the other operands are still found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyserini_compneg.compose.damping import BestScore, damped
from pyserini_compneg.compose.difference import VECTOR_DIFFERENCES, constant, nrf
from pyserini_compneg.compose.intersection import VECTOR_INTERSECTIONS, cpt_operands
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    conjunction,
    holds_difference,
    verbalised,
    without_differences,
)
from pyserini_compneg.compose.scoring import (
    Linear,
    Max,
    Product,
    ScoringNode,
    Sum,
    is_empty,
    positive_weights,
    summands,
)
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.errors import CompositionError, EncodingError
from pyserini_compneg.expression import Atom, Expression, Union, atoms
from pyserini_compneg.vectors import SparseVector, add, checked, is_pseudo_term, max_pool, positive_part, scale


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

    def compose(self, expression: Expression) -> ScoringNode:
        match expression:
            case Atom(text):
                return Linear(self.vectors[text])
            case Union():
                return self._union([self.compose(member) for member in alternatives(expression)])
        parts = conjunction(expression)
        kept = [self.compose(member) for member in parts.kept]
        positive = self._intersection(kept) if len(kept) > 1 else kept[0]
        return self._difference(positive, parts) if parts.excluded else positive

    def _union(self, children: list[ScoringNode]) -> ScoringNode:
        """Eq. 9 or 10 if all children are vectors, otherwise the sum or the maximum of their scores.

        ``dismax`` always takes the maximum of the scores. It is not in the paper; Lucene has it as DisjunctionMaxQuery.
        """
        name = self.operators.union
        vectors = [child.weights for child in children if isinstance(child, Linear)]
        if name in VECTOR_UNIONS and len(vectors) == len(children):
            return Linear(VECTOR_UNIONS[name](vectors))
        nonempty = tuple(child for child in children if not is_empty(child))
        if len(nonempty) < 2:
            return nonempty[0] if nonempty else Linear({})
        return Sum(nonempty) if name == "addition" else Max(nonempty)

    def _intersection(self, children: list[ScoringNode]) -> ScoringNode:
        """Combined Pseudo-Terms in their factored form, Eq. 6 to 8, or one of the paper's ablations."""
        name = self.operators.intersection
        vectors = [child.weights if isinstance(child, Linear) else positive_weights(child) for child in children]
        if name in VECTOR_INTERSECTIONS:
            return Linear(VECTOR_INTERSECTIONS[name](vectors))
        operands = tuple(cpt_operands(vectors, self.operators.top_terms))
        pooled = Linear(scale(max_pool(vectors), self.operators.maxpool_weight if name == "cpt+maxpool" else 0.0))
        if not all(operands):
            return pooled
        product = Product(operands, 2 / len(operands), root=2) if name == "cpt-l2" else Product(operands)
        return _sum(product, pooled)

    def _difference(self, left: ScoringNode, parts: Conjunction) -> ScoringNode:
        r"""A \ B₁ \ … \ Bₙ, Eq. 5 and the other operators; ``left`` is A, composed of the parts that are kept."""
        negatives = [self._negative(member) for member in parts.excluded]
        is_damped = self.operators.difference == "damped"
        if isinstance(left, Linear) and not is_damped:
            return Linear(self._subtract(left.weights, negatives))
        a = max_pool(self.vectors[text] for member in parts.kept for text in atoms(without_differences(member)))
        if not is_damped:
            return _sum(left, Linear(self._penalty(left, a, negatives)))
        if self.best_score is None:
            raise CompositionError("damped needs an index, for the best score of the excluded part; name one (--index)")
        b = {term: weight for term, weight in positive_part(max_pool(negatives)).items() if term not in a}
        return damped(left, b, self.best_score, self.operators.damped_weight) if b else left

    def _negative(self, expression: Expression) -> SparseVector:
        node = self.compose(expression)
        if isinstance(node, Linear) and not holds_difference(expression):
            return node.weights
        return positive_weights(node)

    def _penalty(self, left: ScoringNode, a: SparseVector, negatives: list[SparseVector]) -> dict[str, float]:
        """The linear part that the operator adds to a tree: what it would change in a vector that stands for the tree.

        For ``disentangled`` that vector has all terms of the atoms in A, also those that a conjunction did not take.
        For ``orthogonal`` it has the tree's positive weights. The other operators subtract the same from any vector.
        """
        match self.operators.difference:
            case "disentangled":
                vector = dict.fromkeys(a, 1.0)
            case "orthogonal":
                vector = positive_weights(left)
            case _:
                vector = {}
        return add(self._subtract(vector, negatives), vector, -1.0)

    def _subtract(self, a: SparseVector, negatives: list[SparseVector]) -> dict[str, float]:
        match self.operators.difference:
            case "nrf":
                return nrf(a, negatives, self.operators.nrf_weight)
            case "constant":
                return constant(a, negatives, self.operators.constant_weight)
            case name:
                return VECTOR_DIFFERENCES[name](a, negatives)


def _sum(node: ScoringNode, linear: Linear) -> ScoringNode:
    """The node with a linear part added to it; a sum stays flat, and an empty part is left out."""
    return Sum((*summands(node), linear)) if linear.weights else node
