r"""The difference ``damped``: what is excluded lowers the score of what is wanted by a share of it.

With s the score of what is wanted and b that of B*, the excluded terms that what is wanted lacks, a document scores

    s · (1 - λ · (b / best b)ᵖ)

where best b is the best score that B* has in the index. Documents that mention what is excluded keep almost all of
their score, those that are about it lose up to the share λ. Nothing changes which documents are found.

As a scoring tree it is s less a product, λ / best bᵖ · s · b · … · b. For that b is measured by the powers and the root
that s has: in a conjunction of n operands by n·p operands B* more, so that its score is multiplied by bᵖ as a whole,
with b that of the conjunction of B* n times with itself. A sum or a maximum is damped child by child, the tree of a
maximum for λ up to 1 exactly; what is subtracted in it already is not damped again.

It is this project's, not the paper's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

from pyserini_compneg.compose.scoring import Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.vectors import SparseVector, positive_part

DAMPED_WEIGHT = 0.5
DAMPING_POWER = 4
"""λ and p, chosen on the dev splits of ExcluIR and NegConstraint, read by their cues, and of FilmSets.

A larger p spares more documents, which helps the first two a little (right rank 0.941 for 4 and 8, nDCG@10 of
NegConstraint 0.780 and 0.788), and excludes less of a class of documents: nDCG@10 of FilmSets' A NOT B is 0.546 for 4
and 0.515 for 7, where ``ignore`` has 0.491 and ``disentangled`` 0.545. A larger λ finds fewer wanted documents.
"""

BestScore: TypeAlias = Callable[[ScoringNode], float]
"""The best score that a query has in an index, 0 where no document matches."""


def damped(wanted: ScoringNode, excluded: SparseVector, best_score: BestScore, weight: float) -> ScoringNode:
    """The query for what is wanted, damped.

    Args:
        wanted: The query. Its linear leaves are damped by their positive terms.
        excluded: B*, a positive weight or more.
        best_score: Asks the index.
        weight: λ.

    Raises:
        CompositionError: Weights beyond the limits of exact arithmetic.

    >>> damped(Linear({"birds": 2.0}), {"parrots": 1.0}, lambda node: 10.0, 0.5).children[1].weight
    -5e-05
    """
    operands: tuple[SparseVector, ...]
    alike: ScoringNode
    match wanted:
        case Linear(weights):
            operands, power, root, factor = (positive_part(weights),), 1.0, 1, 1.0
            alike = Linear(excluded)
        case Product() if wanted.weight > 0:
            operands, power, root, factor = wanted.operands, wanted.exponent, wanted.root, wanted.weight
            alike = Product((excluded,) * len(operands), wanted.power, root)
        case Product():
            return wanted
        case Max(children):
            return Max(tuple(damped(child, excluded, best_score, weight) for child in children))
        case Sum(children):
            parts = (damped(child, excluded, best_score, weight) for child in children)
            return Sum(tuple(itertools.chain.from_iterable(map(_summands, parts))))
    best = best_score(alike)
    if best <= 0 or not weight or not all(operands):
        return wanted
    others = (excluded,) * (len(operands) * DAMPING_POWER)
    penalty = Product((*operands, *others), power, root, -weight * factor / best**DAMPING_POWER)
    return Sum((wanted, penalty))


def _summands(node: ScoringNode) -> tuple[ScoringNode, ...]:
    return node.children if isinstance(node, Sum) else (node,)
