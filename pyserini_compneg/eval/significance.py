"""Tests whether one run is better than another or by chance: paired tests, corrections, confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

PERMUTATIONS = 10_000
LEVEL = 0.05

_MOST_ENUMERATED = PERMUTATIONS.bit_length() - 1
_BLOCK = 1 << 22
"""The number of signs drawn at a time, which bounds the memory."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PValue:
    """The p-value of a two-sided test, uncorrected and corrected."""

    raw: float
    holm: float


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean difference between two runs on one measure, with its 95 % interval and two paired tests."""

    difference: float
    interval: Interval
    t_test: PValue
    randomisation: PValue | None

    @property
    def is_significant(self) -> bool:
        """Whether the corrected t-test finds a difference."""
        return self.t_test.holm < LEVEL


def compare(values: Mapping[str, Sequence[float]], randomise: bool = True) -> dict[str, dict[str, PairedDifference]]:
    """The differences of each run from each other run, in the order of ``values``, corrected for all pairs of runs.

    ``values`` has the values of a measure for each run, for the same queries in the same order, at least two.

    >>> compared = compare({"a": [0.5, 0.5, 0.75], "b": [0.25, 0.5, 0.25]})
    >>> compared["a"]["b"].difference, compared["b"]["a"].difference, compared["a"]["b"].is_significant
    (0.25, -0.25, False)
    """
    pairs = list(combinations(values, 2))
    differences = [[a - b for a, b in zip(values[one], values[other], strict=True)] for one, other in pairs]
    t_tests = _corrected([t_test(row) for row in differences])
    randomised = _corrected([randomisation_test(row) for row in differences]) if randomise else [None] * len(pairs)
    found = {}
    for (one, other), row, t, randomisation in zip(pairs, differences, t_tests, randomised, strict=True):
        low, high = confidence_interval(row)
        mean = math.fsum(row) / len(row)
        found[one, other] = PairedDifference(mean, (low, high), t, randomisation)
        found[other, one] = PairedDifference(0.0 - mean, (0.0 - high, 0.0 - low), t, randomisation)
    return {run: {other: found[run, other] for other in values if other != run} for run in values}


def confidence_interval(values: Sequence[float]) -> Interval:
    """The 95 % confidence interval of the mean, by the t distribution.

    The interval makes the same assumptions as the paired t-test. With few queries it may exceed the range of the
    measure.

    Args:
        values: At least two.

    Source: Sakai 2014, Statistical Reform in Information Retrieval?

    >>> low, high = confidence_interval([0.0, 1.0, 0.0, 1.0])
    >>> round(low, 4), round(high, 4)
    (-0.4187, 1.4187)
    """
    from scipy.special import stdtrit

    mean, error = _mean_and_error(values)
    margin = float(stdtrit(len(values) - 1, 1 - LEVEL / 2)) * error
    return mean - margin, mean + margin


def t_test(differences: Sequence[float]) -> float:
    """The p-value of the two-sided paired t-test: 1 if all differences are 0, 0 if all are equal and not 0.

    >>> round(t_test([0.5, 0.25, 0.0, 0.25]), 4)
    0.0917
    """
    from scipy.special import stdtr

    mean, error = _mean_and_error(differences)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(len(differences) - 1, -abs(mean / error)))


def randomisation_test(differences: Sequence[float]) -> float:
    """The p-value of the two-sided paired randomisation test of the mean: the signs of the differences are permuted.

    With up to 13 nonzero differences all permutations are tried, and p is exact. With more, 10,000 permutations are
    drawn, the same in every call, and p is (1 + the number of permutations with at least the observed difference) /
    10,001.

    Source: Smucker, Allan and Carterette 2007; the observed signs count as one permutation, so p is never 0.

    >>> randomisation_test([0.5, 0.25, 0.0, 0.25])
    0.25
    """
    import numpy as np

    sizes = np.abs([difference for difference in differences if difference])
    # The sum with signs is 2 × the sum of the positive sizes − total; the tolerance keeps equal sums equal.
    total = float(sizes.sum())
    observed = abs(math.fsum(differences)) - 1e-12 * total
    if len(sizes) <= _MOST_ENUMERATED:
        positive = (np.arange(1 << len(sizes))[:, None] >> np.arange(len(sizes))) & 1
        return float(np.mean(np.abs(2.0 * (positive @ sizes) - total) >= observed))
    generator = np.random.default_rng(0)
    extreme, remaining, rows = 0, PERMUTATIONS, max(1, _BLOCK // len(sizes))
    while remaining > 0:
        positive = generator.integers(0, 2, size=(min(rows, remaining), len(sizes)), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs(2.0 * (positive @ sizes) - total) >= observed))
        remaining -= rows
    return (1 + extreme) / (1 + PERMUTATIONS)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's procedure, in the order given.

    Source: Holm 1979; the i-th smallest of n becomes the maximum of (n − j + 1) · p_j over j ≤ i, and at most 1.

    >>> holm([0.03, 0.01, 0.04])
    [0.06, 0.03, 0.06]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _corrected(p_values: Sequence[float]) -> list[PValue]:
    return [PValue(raw, corrected) for raw, corrected in zip(p_values, holm(p_values), strict=True)]


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))
