"""The choice of operators: which operation stands for union, intersection and difference, and their settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS
from pyserini_compneg.compose.intersection import CPT_TERMS, VECTOR_INTERSECTIONS
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.support.errors import ArgumentError, QueryError
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import is_number

UNIONS = (*VECTOR_UNIONS, "dismax", "vanilla")
INTERSECTIONS = ("cpt", "cpt-l2", "cpt-pairs", "disentangled", *VECTOR_INTERSECTIONS, "vanilla")
DIFFERENCES = (*DIFFERENCE_WEIGHTS, "ignore", "vanilla")
EXCLUSIONS = ("any", "all")

LARGEST_CPT_WEIGHT = 1e9
"""The largest β; the smallest is one by it."""

EXCLUSION_SHARE = 0.5
"""What NOT! excludes by default, chosen on the dev split of FilmSets: see docs/filters.md."""


@dataclass(frozen=True, slots=True)
class Operators:
    """One operator for each kind of node.

    Attributes:
        union: One of ``UNIONS``.
        intersection: One of ``INTERSECTIONS``.
        difference: One of ``DIFFERENCES``.
        difference_weight: λ, the strength of the difference; None for the one in ``DIFFERENCE_WEIGHTS``. It multiplies
            what is subtracted. For ``damped`` it is the largest share of its score that a document loses.
        cpt_terms: m, how many terms of each operand a conjunction combines, and of how many AND! requires one; of
            ``cpt-pairs``, how many pairs it has. The paper takes 5.
        cpt_weight: β, the weight of the joint occurrence in ``disentangled``; None for ``DISENTANGLED_CPT_WEIGHT``.
        exclusion: What NOT! excludes: documents that score more than this share of the best score of its right side, a
            number between 0 and 1; or those with ``any`` or ``all`` of its ``cpt_terms`` heaviest terms.

    Raises:
        QueryError: An unknown name, or a setting out of its range.
    """

    union: str = "dismax"
    intersection: str = "disentangled"
    difference: str = "damped"
    difference_weight: float | None = None
    cpt_terms: int = CPT_TERMS
    cpt_weight: float | None = None
    exclusion: str | float = EXCLUSION_SHARE

    def __post_init__(self) -> None:
        """Checks every setting."""
        for kind, choices in (("union", UNIONS), ("intersection", INTERSECTIONS), ("difference", DIFFERENCES)):
            name = getattr(self, kind)
            if name not in choices:
                raise QueryError(f"{kind} must be one of {', '.join(choices)}, got {name!r}")
        if not isinstance(self.cpt_terms, int) or not is_number(self.cpt_terms) or self.cpt_terms < 1:
            raise QueryError(f"cpt_terms must be a whole number from 1, got {self.cpt_terms!r}")
        for setting in ("difference_weight", "cpt_weight"):
            weight = getattr(self, setting)
            if weight is None:
                continue
            if not is_number(weight) or not 0 <= weight < math.inf:
                raise QueryError(f"{setting} must be a finite number from 0, got {weight!r}")
        if self.cpt_weight and not 1 / LARGEST_CPT_WEIGHT <= self.cpt_weight <= LARGEST_CPT_WEIGHT:
            limits = f"from {1 / LARGEST_CPT_WEIGHT:g} to {LARGEST_CPT_WEIGHT:g}"
            raise QueryError(f"cpt_weight must be {limits}, got {self.cpt_weight!r}")
        if self.cpt_weight == 0:
            raise QueryError("cpt_weight must be above 0; intersection='maxpool' does without joint occurrence")
        shared = is_number(self.exclusion) and 0 < self.exclusion < 1
        if not shared and self.exclusion not in EXCLUSIONS:
            named = f"one of {', '.join(EXCLUSIONS)}, or a number above 0 and below 1"
            raise QueryError(f"exclusion must be {named}, got {self.exclusion!r}")
        if self.difference_weight is not None and self.difference not in DIFFERENCE_WEIGHTS:
            raise QueryError(f"difference_weight: {self.difference} has no strength; leave it out")
        if self.cpt_weight is not None and self.intersection != "disentangled":
            said = f"cpt_weight: {self.intersection} has no joint occurrence beside other terms"
            raise QueryError(f"{said}; leave it out, or choose disentangled")
        if self.difference == "damped" and self.strength > 1:
            raise QueryError(f"difference_weight of damped must be at most 1, a share, got {self.strength!r}")

    @property
    def strength(self) -> float:
        """λ, as it was chosen or by default; 0 for ``ignore``."""
        default = DIFFERENCE_WEIGHTS.get(self.difference, 0.0)
        return default if self.difference_weight is None else self.difference_weight


def checked_operators(operators: Operators | None) -> Operators | None:
    """The operators as given.

    Raises:
        ArgumentError: They are something else, such as the name of one operator.
    """
    if operators is not None and not isinstance(operators, Operators):
        raise ArgumentError(f'operators must be Operators, such as Operators(difference="nrf"), got {shown(operators)}')
    return operators


DEFAULT_OPERATORS = Operators()
