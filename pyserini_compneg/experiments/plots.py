"""The plots of a report as PNG files: bars, differences by query, and curves; the same bytes for the same results."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from pyserini_compneg.experiments.results import Curve, Results, Row, Section, scaled, shown, unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _MUTED, _RULE, _BAR = "#1b1f24", "#7d8790", "#d3d8de", "#0072b2"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which colour-blind readers can tell apart."""

_SIGNS = ("o-", "s--", "D-.", "^:", "v-", "P--", "X-.", "*:")
_WIDTH = 9.0  # inches
_LABEL_LENGTH = 28
_PANELS_IN_A_LINE = 4
_EQUAL = 1e-9
"""Values this close are the same: they are sums of the same terms in another order."""

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # matplotlib brings it along
    "font.size": 9,
    "text.parse_math": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": _MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "legend.frameon": False,
    "savefig.dpi": 120,
}


def draw_bars(section: Section, results: Results) -> bytes | None:
    """A bar for each row, with its interval and the paper's figure, of the first measure; None without any figure."""
    measure = results.measures[0]
    rows = [
        row
        for row in section.rows
        if measure in row.cells and (row.cells[measure].value is not None or row.cells[measure].published is not None)
    ]
    if not rows:
        return None
    with _new_figure(1.1 + 0.34 * len(rows)) as figure:
        axis = figure.add_subplot()
        for height, row in enumerate(rows):
            _draw_bar(axis, height, row, measure)
        axis.set_yticks(range(len(rows)), [_wrapped(row.name) for row in rows])
        axis.invert_yaxis()
        axis.grid(axis="x")
        axis.margins(x=0.1)
        axis.set_xlabel(f"{measure}{unit(measure)}")
        axis.set_title(section.title)
        handles, labels = axis.get_legend_handles_labels()
        if named := dict(zip(labels, handles, strict=True)):
            figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))
        return _png(figure)


def _draw_bar(axis: Axes, height: int, row: Row, measure: str) -> None:
    cell = row.cells[measure]
    value = cell.published if cell.value is None else cell.value
    assert value is not None
    ends = [scaled(end, measure) for end in (value, *(cell.interval or ()), cell.published or 0.0, 0.0)]
    if cell.value is None:
        axis.barh(height, ends[0], 0.6, facecolor="none", edgecolor=_MUTED, hatch="////", label="published only")
    else:
        axis.barh(height, ends[0], 0.6, color=_BAR)
        if cell.interval is not None:
            axis.plot(ends[1:3], [height, height], "-|", color=_INK, label="95 % interval")
        if cell.published is not None:
            axis.plot(scaled(cell.published, measure), height, "D", color="white", mec=_INK, ms=5, label="paper")
    axis.annotate(shown(value, measure), (max(ends), height), (6, 0), textcoords="offset points", va="center")


def differences(section: Section, measure: str) -> dict[str, list[float]]:
    """Each row's value minus the baseline's for each query, in falling order; nothing without a baseline."""
    baseline = section.per_query.get(section.baseline, {})
    by_row = {}
    for row in section.rows:
        values = section.per_query.get(row.name, {})
        changes = [values[qid][measure] - base[measure] for qid, base in baseline.items() if qid in values]
        if changes and row.name != section.baseline:
            by_row[row.name] = sorted((0.0 if abs(change) < _EQUAL else change for change in changes), reverse=True)
    return by_row


def draw_differences(section: Section, results: Results) -> bytes | None:
    """A panel for each row but the baseline, with counts of better and worse queries; None if there is no such row."""
    measure = results.measures[0]
    by_row = differences(section, measure)
    if not by_row:
        return None
    columns = min(len(by_row), _PANELS_IN_A_LINE)
    lines = math.ceil(len(by_row) / columns)
    with _new_figure(0.75 + 1.7 * lines) as figure:
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for panel in panels.flat[len(by_row) :]:
            panel.set_visible(False)
        for panel, (method, changes) in zip(panels.flat, by_row.items(), strict=False):
            panel.stairs([scaled(change, measure) for change in changes], fill=True, color=_BAR)
            panel.axhline(0, color=_MUTED, linewidth=0.8)
            panel.set_title(_wrapped(method), fontsize=9)
            panel.set_xticks([])
            panel.grid(axis="y")
            counts = counted(changes, measure in results.lower_is_better).replace(", ", "\n")
            panel.text(0.98, 0.97, counts, fontsize=8, transform=panel.transAxes, ha="right", va="top")
        figure.supylabel(f"difference in {measure}{unit(measure)}", fontsize=9)
        figure.supxlabel(f"queries, by difference from {section.baseline}", fontsize=9)
        return _png(figure)


def counted(changes: list[float], lower_is_better: bool) -> str:
    """How many of some differences are for the better and for the worse.

    >>> counted([0.5, 0.1, 0.0, -0.2], lower_is_better=False)
    '2 better, 1 equal, 1 worse'
    """
    above, below = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    better, worse = (below, above) if lower_is_better else (above, below)
    return f"{better} better, {len(changes) - above - below} equal, {worse} worse"


def draw_curve(curve: Curve) -> bytes | None:
    """A line for each method, with 95 % intervals; None if there is no point."""
    if not any(curve.series.values()):
        return None
    with _new_figure(4.6) as figure:
        axis = figure.add_subplot()
        for (method, points), colour, sign in zip(curve.series.items(), cycle(_COLOURS), cycle(_SIGNS), strict=False):
            middles, low, high = (
                [scaled(value, curve.y_label) for value in values]
                for values in (
                    [point.y for point in points],
                    [max(0.0, point.y - point.low) for point in points],
                    [max(0.0, point.high - point.y) for point in points],
                )
            )
            xs = [point.x for point in points]
            axis.errorbar(
                xs,
                middles,
                (low, high),
                fmt=sign,
                color=colour,
                capsize=2,
                ms=5,
                elinewidth=0.8,
                label=_wrapped(method),
            )
        axis.set_title(curve.title)
        axis.set_xlabel(curve.x_label)
        axis.set_ylabel(f"{curve.y_label}{unit(curve.y_label)}")
        axis.grid(axis="y")
        figure.legend(loc="outside right center")
        return _png(figure)


@contextmanager
def _new_figure(height: float) -> Iterator[Figure]:
    """An empty figure of a height in inches, in the report's style, whatever the user's settings of matplotlib are."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(_STYLE, after_reset=True):
        yield Figure(figsize=(_WIDTH, height), layout="constrained")


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box then stands for the character
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _LABEL_LENGTH, max_lines=2, placeholder=" …"))
