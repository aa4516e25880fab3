"""The plot of a curve: a measure against a property of the queries, such as the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyserini_compneg.reproduce.report.drawing import LINE, MUTED, Look, Plot, finished, label, new_figure
from pyserini_compneg.reproduce.report.numbers import scaled, shown, unit
from pyserini_compneg.reproduce.results import Curve, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 4.6
_LEGEND_LENGTH = 28
_DODGE = 0.012
"""The distance between points of the same bin, as a share of the range of x, so that no whisker hides another."""


def draw_curve(curve: Curve, looks: Mapping[str, Look], name: str) -> Plot | None:
    """A line for each method, with whiskers, above the sizes of the bins, if they differ; None if there is no point."""
    sizes = {point.x: point.queries for points in curve.series.values() for point in points}
    if not sizes:
        return None
    span = (max(sizes) - min(sizes)) or 1.0
    drawn = [(method, points) for method, points in curve.series.items() if points]
    with new_figure(_HEIGHT) as figure:
        if len(set(sizes.values())) == 1:
            axis = lowest = figure.add_subplot()
            x_label = f"{curve.x_label} ({_queries(min(sizes.values()))} at each point)"
        else:
            axis, lowest = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
            _draw_sizes(lowest, sizes, span)
            x_label = curve.x_label
        for place, (method, points) in enumerate(drawn):
            shift = _DODGE * span * (place - (len(drawn) - 1) / 2)
            _draw_line(axis, method, points, shift, curve.y_label, looks[method])
        axis.set_title(label(curve.title, LINE))
        axis.set_ylabel(f"{curve.y_label}{unit(curve.y_label)}")
        axis.grid(axis="y")
        lowest.set_xlabel(label(x_label, LINE))
        figure.legend(*axis.get_legend_handles_labels(), loc="outside right center")
        caption = f"{curve.y_label} by {curve.x_label}: means with 95 % confidence intervals."
        return finished(figure, name, caption, _alt(curve))


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
        label=label(method, _LEGEND_LENGTH, 3),
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
    """All points; their numbers of queries once, if they are the same."""
    sizes = {point.queries for points in curve.series.values() for point in points}
    parts = []
    for method, points in curve.series.items():
        values = (_point(point, curve.y_label, len(sizes) > 1) for point in points)
        parts.append(f"{method} {', '.join(values)}")
    same = f" ({_queries(sizes.pop())} each)" if len(sizes) == 1 else ""
    return f"Curves of {curve.y_label}{unit(curve.y_label)} against {curve.x_label}: {'; '.join(parts)}{same}."


def _point(point: Point, measure: str, with_size: bool) -> str:
    size = f" ({_queries(point.queries)})" if with_size else ""
    return f"{shown(point.y, measure)} at {point.x:.3g}{size}"


def _queries(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"
