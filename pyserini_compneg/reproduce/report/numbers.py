"""How numbers are shown: the one place that decides on units and decimals."""

from __future__ import annotations

import re

from pyserini_compneg.reproduce.term_measures import TERM_MEASURES

_PERCENT = ("right_rank", "paired_accuracy", "delta_", *TERM_MEASURES)
"""The beginnings of the names of measures that the papers print in percent, and shares of words, which are small."""

MINUS = "\N{MINUS SIGN}"


def is_percent(measure: str) -> bool:
    """Whether a measure is shown in percent, as the papers of NevIR and ExcluIR do it; the others are fractions.

    >>> is_percent("delta_recall@1"), is_percent("nDCG@10")
    (True, False)
    """
    return measure.startswith(_PERCENT)


def unit(measure: str) -> str:
    """What stands behind the name of a measure: `` (%)`` or nothing."""
    return " (%)" if is_percent(measure) else ""


def scaled(value: float, measure: str) -> float:
    """A value, a fraction, in the unit that it is shown in."""
    return 100 * value if is_percent(measure) else value


def shown(value: float, measure: str) -> str:
    """A value, ours or a published one.

    >>> shown(0.25847, "nDCG@10"), shown(0.37093, "paired_accuracy"), shown(-0.12, "delta_mrr@10")
    ('0.258', '37.09', '−12.00')
    """
    return _signed(f"{_rounded(value, measure):.{_decimals(measure)}f}")


def shown_difference(value: float, measure: str) -> str:
    """A difference of two values, always with its sign.

    >>> shown_difference(0.192, "R@100"), shown_difference(-0.0001, "R@100")
    ('+0.192', '±0.000')
    """
    difference = _rounded(value, measure)
    return _signed(f"{difference:+.{_decimals(measure)}f}") if difference else f"±{shown(0.0, measure)}"


def shown_interval(interval: tuple[float, float], measure: str) -> str:
    """Both ends of an interval.

    >>> shown_interval((0.2, 0.3), "R@100")
    '0.200 to 0.300'
    """
    return " to ".join(shown(end, measure) for end in interval)


def formula_parts(formula: str) -> list[tuple[str, bool]]:
    """The parts of a formula, each with whether it is an index, which follows an underscore.

    >>> formula_parts("A − π_B(A)")
    [('A − π', False), ('B', True), ('(A)', False)]
    """
    pieces = re.split(r"_(\w+)", formula)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def shown_weight(weight: float) -> str:
    """The weight of a term: whole weights as they are, others with two decimals.

    >>> shown_weight(312.0), shown_weight(1.566), shown_weight(-0.66)
    ('312', '1.57', '−0.66')
    """
    return _signed(f"{weight:.0f}" if float(weight).is_integer() else f"{weight:.2f}")


def shown_setting(value: str | float) -> str:
    """What a dataset or a setting has: whole numbers with separators of thousands, all else as it is.

    >>> shown_setting(33825), shown_setting(0.25), shown_setting("bm25")
    ('33,825', '0.25', 'bm25')
    """
    return f"{value:,}" if isinstance(value, int) else str(value)


def shown_seconds(seconds: float) -> str:
    """A span of time.

    >>> shown_seconds(0.42), shown_seconds(754.2), shown_seconds(7500)
    ('0.4 s', '12 min 34 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _decimals(measure: str) -> int:
    return 2 if is_percent(measure) else 3


def _rounded(value: float, measure: str) -> float:
    """The number that is printed, without the sign of a negative 0."""
    return round(scaled(value, measure), _decimals(measure)) + 0.0


def _signed(digits: str) -> str:
    return digits.replace("-", MINUS)
