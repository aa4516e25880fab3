"""The plot of a curve: a measure against a property of the queries, such as the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyserini_compneg.reproduce.report.drawing import MUTED, Look, Plot, finished, new_figure
from pyserini_compneg.reproduce.report.numbers import scaled, shown, unit
from pyserini_compneg.reproduce.results import Curve, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 4.6
_DODGE = 0.012
"""The distance between points of the same bin, as a share of the range of x, so that no whisker hides another."""


def draw_curve(curve: Curve, looks: Mapping[str, Look], name: str) -> Plot | None:
    """A line for each method, with whiskers, above the sizes of the bins; None if there is no point."""
    sizes = {point.x: point.queries for points in curve.series.values() for point in points}
    if not sizes:
        return None
    span = (max(sizes) - min(sizes)) or 1.0
    drawn = [(method, points) for method, points in curve.series.items() if points]
    with new_figure(_HEIGHT) as figure:
        axis, below = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
        for place, (method, points) in enumerate(drawn):
            shift = _DODGE * span * (place - (len(drawn) - 1) / 2)
            _draw_line(axis, method, points, shift, curve.y_label, looks[method])
        axis.set_title(curve.title)
        axis.set_ylabel(f"{curve.y_label}{unit(curve.y_label)}")
        axis.grid(axis="y")
        _draw_sizes(below, sizes, span)
        below.set_xlabel(curve.x_label)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside right center")
        caption = f"{curve.y_label} against {curve.x_label}: means of bins with 95 % confidence intervals, and the "
        return finished(figure, name, f"{caption}number of queries in each bin.", _alt(curve))


def _draw_line(axis: Axes, method: str, points: tuple[Point, ...], shift: float, measure: str, look: Look) -> None:
    middles = [scaled(point.y, measure) for point in points]
    low = [max(0.0, scaled(point.y - point.low, measure)) for point in points]
    high = [max(0.0, scaled(point.high - point.y, measure)) for point in points]
    axis.errorbar(
        [point.x + shift for point in points],
        middles,
        yerr=(low, high),
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        markersize=5,
        linewidth=1.6,
        elinewidth=0.9,
        capsize=2,
        label=method,
    )


def _draw_sizes(axis: Axes, sizes: Mapping[float, int], span: float) -> None:
    axis.bar(list(sizes), list(sizes.values()), width=0.06 * span, color=MUTED)
    for x, queries in sizes.items():
        axis.annotate(f"{queries:,}", (x, queries), (0, 2), textcoords="offset points", ha="center", fontsize=8)
    axis.set_ylabel("queries")
    axis.set_yticks([])
    axis.set_ylim(0, 1.45 * max(1, *sizes.values()))
    axis.spines["left"].set_visible(False)


def _alt(curve: Curve) -> str:
    parts = []
    for method, points in curve.series.items():
        values = (f"{shown(point.y, curve.y_label)} at {point.x:.2f}" for point in points)
        parts.append(f"{method} {', '.join(values)}")
    return f"Curves of {curve.y_label}{unit(curve.y_label)} against {curve.x_label}: {'; '.join(parts)}."
