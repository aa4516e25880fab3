r"""The difference ``damped``: a document loses the more of its score, the better it answers the excluded part.

Let B* be the terms of B that A lacks, and let s and b be a document's scores under A and under B*. The document scores

    s · (1 - λ · (b / best b)ᵖ)

where best b is the best score of B* in the index. A document that only mentions B keeps almost all of its score, and
one that is about B loses up to the share λ. The documents that are found stay the same.

As a scoring tree this is s less a product, λ / best bᵖ · s · b · … · b. In it b has the powers and the root of s. If s
is a conjunction of n operands, the product has n·p more operands B*; its score is that of A times bᵖ, where b is the
score of the conjunction of n operands B*. A sum or a maximum is damped child by child; for a maximum and λ up to 1 that
is exact. A part that is subtracted already is not damped again.

The operator is this project's, not the paper's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyserini_compneg.compose.scoring import Linear, Max, Product, ScoringNode, Sum, summands
from pyserini_compneg.vectors import SparseVector, positive_part

DAMPED_WEIGHT = 0.5
DAMPING_POWER = 4
"""λ and p, chosen on the dev splits of ExcluIR and NegConstraint, read by their cues, and of FilmSets.

A larger p spares more documents. That helps the first two a little (right rank 0.941 for 4 and 8, nDCG@10 of
NegConstraint 0.780 and 0.788), and excludes less of a class of documents: nDCG@10 of FilmSets' A NOT B is 0.546 for 4
and 0.515 for 7, where ``ignore`` has 0.491 and ``disentangled`` 0.545. A larger λ finds fewer wanted documents.
"""

BestScore: TypeAlias = Callable[[ScoringNode], float]
"""The best score that a query has in an index, 0 where no document matches."""


def damped(wanted: ScoringNode, excluded: SparseVector, best_score: BestScore, weight: float) -> ScoringNode:
    """The query A, damped.

    Args:
        wanted: A. Its linear leaves are damped by their positive terms.
        excluded: B*, a positive weight or more.
        best_score: Asks the index.
        weight: λ.

    Raises:
        CompositionError: Weights beyond the limits of exact arithmetic.

    >>> damped(Linear({"birds": 2.0}), {"parrots": 1.0}, lambda node: 10.0, 0.5).children[1].weight
    -5e-05
    """
    operands: tuple[SparseVector, ...]
    b: ScoringNode
    match wanted:
        case Linear(weights):
            operands, power, root, factor = (positive_part(weights),), 1.0, 1, 1.0
            b = Linear(excluded)
        case Product() if wanted.weight > 0:
            operands, power, root, factor = wanted.operands, wanted.exponent, wanted.root, wanted.weight
            b = Product((excluded,) * len(operands), wanted.power, root)
        case Product():
            return wanted
        case Max(children):
            return Max(tuple(damped(child, excluded, best_score, weight) for child in children))
        case Sum(children):
            parts = (damped(child, excluded, best_score, weight) for child in children)
            return Sum(tuple(part for child in parts for part in summands(child)))
    best = best_score(b)
    if best <= 0 or not weight or not all(operands):
        return wanted
    powers_of_b = (excluded,) * (len(operands) * DAMPING_POWER)
    penalty = Product((*operands, *powers_of_b), power, root, -weight * factor / best**DAMPING_POWER)
    return Sum((wanted, penalty))
