"""The choice of operators for union, intersection and difference, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS, VECTOR_DIFFERENCES
from pyserini_compneg.compose.intersection import CPT_TERMS, CPT_WEIGHT, VECTOR_INTERSECTIONS
from pyserini_compneg.compose.operator_names import Operator, OperatorKind, operator_name
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.support.arguments import finite_number
from pyserini_compneg.support.errors import ArgumentError, QueryError
from pyserini_compneg.support.options import COUNT, NOT_NEGATIVE, POSITIVE, Number, check_options, option
from pyserini_compneg.support.terminal import shown

UNIONS = (*VECTOR_UNIONS, "dismax", "vanilla")
INTERSECTIONS = ("cpt", "cpt-l2", "cpt-pairs", "cpt-maxpool", *VECTOR_INTERSECTIONS, "vanilla")
DIFFERENCES = (*DIFFERENCE_WEIGHTS, "ignore", "vanilla")

OPERATOR_SETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "paper": {"union": "maxpool", "intersection": "cpt", "difference": "disentangled", "cpt_terms": 5},
    "vanilla": {"union": "vanilla", "intersection": "vanilla", "difference": "vanilla"},
}
"""Operators that are chosen together: the defaults, the best ones of Krasakis, Yates and Kanoulas, and the wording."""

UNION = OperatorKind("union", UNIONS, VECTOR_UNIONS)
INTERSECTION = OperatorKind("intersection", INTERSECTIONS, VECTOR_INTERSECTIONS)
DIFFERENCE = OperatorKind("difference", DIFFERENCES, VECTOR_DIFFERENCES)

LARGEST_CPT_WEIGHT = 1e9
"""The largest β. The smallest β is 1 divided by this number."""

EXCLUSION_SHARE = 0.5
"""The share of the best score by which ``exclusion="score"`` excludes, chosen on the dev split of FilmSets."""

_SHARE = Number("a number above 0 and below 1", finite_number, lambda value: 0 < value < 1)
_WEIGHTS = ", ".join(f"{name} {weight:g}" for name, weight in DIFFERENCE_WEIGHTS.items())


def _operator(sign: str, default: str, kind: OperatorKind, renamed: Mapping[str, str] | None = None) -> Operator:
    help = f"{sign}: {', '.join(kind.names)} (default {default}), or an operator of another package"
    chosen: Operator = option(default, help, choices=kind, metavar="NAME", renamed=renamed)
    return chosen


@dataclass(frozen=True, slots=True)
class Operators:
    """One operator for each kind of node.

    Attributes:
        union: One of ``UNIONS``, the name of an operator that another package has as an entry point, or a function of
            the vectors of the operands that returns a vector. Vectors are dictionaries of terms and weights.
        intersection: One of ``INTERSECTIONS``, such a name, or such a function.
        difference: One of ``DIFFERENCES``, such a name, or a function of the vector A, a list of the vectors B, and λ.
        difference_weight: λ, the strength of the difference; None takes it from ``DIFFERENCE_WEIGHTS``, or from the
            default of a function's third argument. λ multiplies the subtracted part. Under ``damped``, a document loses
            at most this share of its score.
        cpt_terms: m. A conjunction combines the m heaviest terms of each operand, and AND! requires one of m words of
            each operand. ``cpt-pairs`` has m pairs. The paper sets m to 5.
        cpt_weight: β, the weight of the joint occurrence in ``cpt-maxpool``; None takes ``CPT_WEIGHT``.
        exclusion: Which documents NOT! excludes. ``words``: documents with all words of an atom of the right side. A
            number between 0 and 1: documents that score above this share of the best score for the right side;
            ``score`` is ``EXCLUSION_SHARE``. ``any``: documents with any of the ``cpt_terms`` heaviest terms of the
            right side.

    Raises:
        QueryError: An unknown name, a function that takes other arguments or has no number as the default of λ, or a
            setting out of its range.
    """

    union: Operator = _operator("OR", "dismax", UNION)
    intersection: Operator = _operator("AND", "cpt-maxpool", INTERSECTION, {"disentangled": "cpt-maxpool"})
    difference: Operator = _operator("NOT", "damped", DIFFERENCE)
    difference_weight: float | None = option(
        None, f"strength of NOT: the excluded part is multiplied by X (defaults: {_WEIGHTS})", NOT_NEGATIVE
    )
    cpt_terms: int = option(
        CPT_TERMS,
        "terms of each operand that a conjunction by cpt combines, words of which AND! requires one, or pairs of "
        f"cpt-pairs (default {CPT_TERMS})",
        COUNT,
    )
    cpt_weight: float | None = option(
        None, f"weight of joint occurrence in cpt-maxpool (default {CPT_WEIGHT:g})", POSITIVE
    )
    exclusion: str | float = option(
        "words",
        "NOT! removes documents with all words of the excluded text (words, default), with any of its heaviest terms "
        f"(any, --cpt-terms), or above a share of the best score for it (a number; score is {EXCLUSION_SHARE})",
        _SHARE,
        choices=("words", "score", "any"),
        metavar="HOW",
        replaced={"all": "words"},
    )

    def __post_init__(self) -> None:
        """Checks each setting, then the settings that depend on another."""
        check_options(self, QueryError)
        for kind in (UNION, INTERSECTION, DIFFERENCE):
            if not isinstance(operator := getattr(self, kind.kind), str):
                kind.function(operator)  # refuses what takes other arguments; a name is loaded when it is used
        if not isinstance(self.difference, str):
            DIFFERENCE.strength(self.difference, DIFFERENCE_WEIGHTS)
        smallest, largest = 1 / LARGEST_CPT_WEIGHT, LARGEST_CPT_WEIGHT
        if self.cpt_weight is not None and not smallest <= self.cpt_weight <= largest:
            raise QueryError(f"cpt_weight must be from {smallest:g} to {largest:g}, got {self.cpt_weight!r}")
        if self.difference_weight is not None and self.default_strength is None:
            raise QueryError(f"{self.difference} has no strength", where="difference_weight", remedy="leave it out")
        if self.cpt_weight is not None and self.intersection != "cpt-maxpool":
            what = f"{operator_name(self.intersection)} has no joint occurrence beside other terms"
            raise QueryError(what, where="cpt_weight", remedy="leave it out, or choose cpt-maxpool")
        if self.difference == "damped" and self.strength > 1:
            raise QueryError(f"difference_weight of damped must be at most 1, a share, got {self.strength!r}")

    @classmethod
    def named(cls, name: str, **others: Any) -> Self:
        """The operators of one of ``OPERATOR_SETS``.

        Args:
            name: ``default``; ``paper``, those of Krasakis, Yates and Kanoulas (Eq. 5, 6 to 8, and 10); or ``vanilla``,
                which encodes the wording of the whole query as one text.
            **others: Fields that differ from the set.

        Raises:
            QueryError: There is no such set, or a field is refused.

        >>> Operators.named("paper", union="addition").names
        {'union': 'addition', 'intersection': 'cpt', 'difference': 'disentangled'}
        """
        if name not in OPERATOR_SETS:
            raise QueryError(f"operators must be one of {', '.join(OPERATOR_SETS)}, got {shown(name)}")
        return cls(**{**OPERATOR_SETS[name], **others})

    @property
    def strength(self) -> float:
        """The chosen or default λ; 0 for ``ignore``."""
        return (self.default_strength or 0.0) if self.difference_weight is None else self.difference_weight

    @property
    def default_strength(self) -> float | None:
        """The λ of the difference if none is chosen; None for an operator without a strength."""
        return DIFFERENCE.strength(self.difference, DIFFERENCE_WEIGHTS)

    @property
    def names(self) -> dict[str, str]:
        """The names of the three operators for people, by their kinds."""
        return {one.kind: operator_name(getattr(self, one.kind)) for one in (UNION, INTERSECTION, DIFFERENCE)}


DEFAULT_OPERATORS = Operators()


def chosen_operators(*given: Operators | None) -> Operators:
    """The first operators that are not None, or the defaults. A query's own operators come before the searcher's."""
    for operators in given:
        if operators is not None and not isinstance(operators, Operators):
            example = 'such as Operators(difference="nrf")'
            raise ArgumentError(f"operators must be Operators, {example}, got {shown(operators)}")
    return next(filter(None, given), DEFAULT_OPERATORS)
