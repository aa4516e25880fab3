"""The choice of operators: which operation stands for union, intersection and difference, and their settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyserini_compneg.compose.damping import DAMPED_WEIGHT
from pyserini_compneg.compose.difference import CONSTANT_WEIGHT, NRF_WEIGHT, VECTOR_DIFFERENCES
from pyserini_compneg.compose.intersection import TOP_TERMS, VECTOR_INTERSECTIONS
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.vectors import is_number

UNIONS = (*VECTOR_UNIONS, "dismax", "vanilla")
INTERSECTIONS = ("cpt", "cpt+maxpool", "cpt-l2", *VECTOR_INTERSECTIONS, "vanilla")
DIFFERENCES = (*VECTOR_DIFFERENCES, "damped", "vanilla")


@dataclass(frozen=True, slots=True)
class Operators:
    """One operator for each kind of node.

    Attributes:
        union: One of ``UNIONS``.
        intersection: One of ``INTERSECTIONS``.
        difference: One of ``DIFFERENCES``.
        top_terms: How many terms of each operand a conjunction combines (cpt, cpt-l2); the paper takes 5.
        maxpool_weight: α, the weight of maxpool in ``cpt+maxpool``.
        nrf_weight: λ of ``nrf``.
        constant_weight: λ of ``constant``.
        damped_weight: λ of ``damped``, the largest share of its score that a document loses.

    Raises:
        CompositionError: An unknown name, or a setting out of its range.
    """

    union: str = "dismax"
    intersection: str = "cpt+maxpool"
    difference: str = "disentangled"
    top_terms: int = TOP_TERMS
    maxpool_weight: float = 1.0
    nrf_weight: float = NRF_WEIGHT
    constant_weight: float = CONSTANT_WEIGHT
    damped_weight: float = DAMPED_WEIGHT

    def __post_init__(self) -> None:
        """Checks every setting."""
        for kind, choices in (("union", UNIONS), ("intersection", INTERSECTIONS), ("difference", DIFFERENCES)):
            name = getattr(self, kind)
            if name not in choices:
                raise CompositionError(f"{kind} must be one of {', '.join(choices)}, got {name!r}")
        if not isinstance(self.top_terms, int) or not is_number(self.top_terms) or self.top_terms < 1:
            raise CompositionError(f"top_terms must be a whole number from 1, got {self.top_terms!r}")
        for setting in ("maxpool_weight", "nrf_weight", "constant_weight", "damped_weight"):
            weight = getattr(self, setting)
            if not is_number(weight) or not 0 <= weight < math.inf:
                raise CompositionError(f"{setting} must be a finite number from 0, got {weight!r}")


DEFAULT_OPERATORS = Operators()
