"""Adapts a scoring tree to an index: the same scores, from terms that the index has.

- An index of signed documents keeps their negative weights under complement terms. A linear leaf asks for each term and
  its complement. Operands of a product, and parts that damp a score, exclude documents or are required, count positive
  impacts only: the root of a negative weight is undefined.
- In the ``materialised`` form a product becomes a linear leaf over pairs, unless it damps a score. The index must hold
  the pairs. A sum of linear leaves becomes one leaf. A query of one leaf without negative weights also runs on stock
  Anserini.

An index holds the pairs of a document's heaviest terms. A document that a conjunction finds by lighter terms in the
``factored`` form is missed in the ``materialised`` form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyserini_compneg.compose.intersection import cpt_pairs
from pyserini_compneg.compose.scoring import Linear, Product, ScoringNode, Sum
from pyserini_compneg.compose.trees import kept_terms, summands, with_wanted
from pyserini_compneg.compose.union import addition
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.vectors import SparseVector, complement_term, positive_part, scale

FACTORED, MATERIALISED = CPT_FORMS = ("factored", "materialised")
"""The forms of a conjunction: a product of sums over plain terms, for any index, or one sum over pairs."""


def adapted(node: ScoringNode, cpt: str = FACTORED, signed: bool = False) -> ScoringNode:
    """The scoring tree in the form that an index can run.

    Args:
        node: The composed query.
        cpt: The form of the query's conjunctions, one of ``CPT_FORMS``.
        signed: Whether the index keeps negative weights of documents.

    Raises:
        QueryError: The form is unknown, or a conjunction cannot be written as a sum over pairs: it has more than two
            operands, or a power or a root of its own, as ``cpt-l2`` has.

    >>> adapted(Product(({"andes": 4.0}, {"birds": 1.0})), "materialised")
    Linear(weights={'andes∩birds': 2.0})
    >>> adapted(Linear({"birds": 1.0}), signed=True)
    Linear(weights={'birds': 1.0, '¬birds': -1.0})
    """
    if cpt not in CPT_FORMS:
        raise QueryError(f"cpt must be one of {', '.join(CPT_FORMS)}, got {cpt!r}")
    node = _with_complements(node) if signed else node
    return _materialised(node) if cpt == MATERIALISED else node


def signed_query(weights: SparseVector) -> dict[str, float]:
    """The weights with which Σ q·d over signed documents becomes a sum over positive impacts.

    A document keeps a weight d > 0 under t, and a weight d < 0 as |d| under ¬t. So the query weighs t by q and ¬t by
    −q.

    >>> signed_query({"birds": 2.0, "parrots": -1.0})
    {'birds': 2.0, '¬birds': -2.0, 'parrots': -1.0, '¬parrots': 1.0}
    """
    return {
        name: value
        for term, weight in weights.items()
        for name, value in ((term, weight), (complement_term(term), -weight))
    }


def _with_complements(node: ScoringNode) -> ScoringNode:
    if isinstance(node, Linear):
        return replace(node, weights=signed_query(node.weights))
    return with_wanted(node, _with_complements)


def _materialised(node: ScoringNode) -> ScoringNode:
    if isinstance(node, Product):
        if not node.is_sum_over_tuples:
            what = f"a product of power {node.exponent:g} and root {node.root} is not a sum over pairs"
            raise QueryError(what, remedy="use the factored form (--cpt factored), or --intersection cpt")
        return Linear(scale(cpt_pairs(node.operands, top=max(map(len, node.operands))), node.weight))
    if isinstance(node, Sum):
        return _merged([part for child in node.children for part in summands(_materialised(child))])
    return with_wanted(node, _materialised)


def _merged(parts: Sequence[ScoringNode]) -> ScoringNode:
    """The sum of the parts. Linear leaves are merged into one if the sum then finds the same documents.

    Leaves are not merged if a term is positive in one leaf and negative in another. The sum of its weights may round to
    0, and documents that only this term finds would be lost.
    """
    leaves = [part for part in parts if isinstance(part, Linear)]
    vectors = [leaf.weights for leaf in leaves]
    positive = {term for vector in vectors for term in positive_part(vector)}
    if any(weight < 0 and term in positive for vector in vectors for term, weight in vector.items()):
        return Sum(tuple(parts))
    merged = (Linear(addition(vectors), kept_terms(*leaves)), *(part for part in parts if not isinstance(part, Linear)))
    return merged[0] if len(merged) == 1 else Sum(merged)
