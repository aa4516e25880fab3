"""The plot of differences, query by query: for which queries is a method better than the baseline?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Any

from pyserini_compneg.reproduce.report.drawing import INK, LINE, MUTED, Look, Plot, finished, halo, label, new_figure
from pyserini_compneg.reproduce.report.numbers import scaled, unit
from pyserini_compneg.reproduce.results import Results, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = (4, 3)
"""Panels side by side: the number that leaves fewer places empty."""

_PANEL_HEIGHT, _FRAME_HEIGHT = 1.7, 0.75
_MARGIN, _ROOM_FOR_COUNTS = 0.1, 0.7
"""Of the height of a panel, and of what lies below its zero."""

_EQUAL = 1e-9
"""Values this close are the same: they are sums of the same terms in another order."""


@dataclass(frozen=True, slots=True)
class Differences:
    """A method against the baseline.

    Attributes:
        values: The method's value minus the baseline's for each query, in falling order, 0 for equals.
        better: For how many queries the method is better.
        equal: For how many it is as good.
        worse: For how many it is worse.
    """

    values: tuple[float, ...]
    better: int
    equal: int
    worse: int


def differences(section: Section, measure: str, lower_is_better: bool = False) -> dict[str, Differences]:
    """The differences of each row that has values by query, in the order of the rows; none without a baseline."""
    baseline = section.per_query.get(section.baseline)
    if baseline is None:
        return {}
    names = [row.name for row in section.rows if row.name in section.per_query and row.name != section.baseline]
    return {name: _differences(section.per_query[name], baseline, measure, lower_is_better) for name in names}


def draw_differences(section: Section, results: Results, looks: Mapping[str, Look], name: str) -> Plot | None:
    """A panel for each method, with its counts of better, equal and worse queries; None if there is no method."""
    measure = results.measures[0]
    found = differences(section, measure, measure in results.lower_is_better)
    if not found:
        return None
    columns = min(len(found), min(_COLUMNS, key=lambda count: -len(found) % count))
    lines = ceil(len(found) / columns)
    with new_figure(_FRAME_HEIGHT + _PANEL_HEIGHT * lines) as figure:
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for panel in panels.flat[len(found) :]:
            panel.set_visible(False)
        for panel, (method, one) in zip(panels.flat, found.items(), strict=False):
            _draw_panel(panel, label(method, LINE // columns - 1, 2), one, measure, looks[method].colour)
        panels[0, 0].set_ylim(*(scaled(end, measure) for end in _limits(found.values())))
        figure.supylabel(f"difference in {measure}{unit(measure)}", fontsize=9)
        figure.supxlabel(label(f"queries, by difference from {section.baseline}", LINE), fontsize=9)
        counts = "; ".join(f"{method}: {counted(one)}" for method, one in found.items())
        caption = f"{measure} of each query minus that of {section.baseline}, sorted."
        return finished(figure, name, caption, f"Differences from {section.baseline} in {section.title}. {counts}.")


def counted(one: Differences) -> str:
    """The counts in words."""
    return f"{one.better} better, {one.equal} equal, {one.worse} worse"


def _differences(
    values: Mapping[str, Mapping[str, float]],
    baseline: Mapping[str, Mapping[str, float]],
    measure: str,
    lower_is_better: bool,
) -> Differences:
    found = [values[qid][measure] - base[measure] for qid, base in baseline.items() if qid in values]
    ordered = tuple(sorted((0.0 if abs(value) < _EQUAL else value for value in found), reverse=True))
    above, below = sum(value > 0 for value in ordered), sum(value < 0 for value in ordered)
    better, worse = (below, above) if lower_is_better else (above, below)
    return Differences(ordered, better, len(ordered) - above - below, worse)


def _draw_panel(panel: Axes, title: str, one: Differences, measure: str, colour: str) -> None:
    heights, edges = _steps(one.values)
    panel.stairs([scaled(height, measure) for height in heights], edges, fill=True, color=colour)
    panel.axhline(0, color=MUTED, linewidth=0.8)
    panel.set_title(title, fontsize=9)
    panel.set_xticks([])
    panel.spines["bottom"].set_visible(False)
    panel.grid(axis="y")
    counts = counted(one).replace(", ", "\n")
    place: dict[str, Any] = {"transform": panel.transAxes, "ha": "right", "va": "top"}
    panel.text(0.98, 0.97, counts, fontsize=8, color=INK, path_effects=halo(), **place)


def _limits(found: Collection[Differences]) -> tuple[float, float]:
    """The ends of the vertical axis: as far as the differences go, with room above for the counts."""
    values = [value for one in found for value in one.values]
    low, high = min([0.0, *values]), max([0.0, *values])
    margin = _MARGIN * ((high - low) or 1.0)
    return low - margin, max(high, _ROOM_FOR_COUNTS * -low) + margin


def _steps(values: Sequence[float]) -> tuple[list[float], list[int]]:
    """Runs of equal values as one step each.

    >>> _steps([0.5, 0.0, 0.0])
    ([0.5, 0.0], [0, 1, 3])
    """
    heights, edges = [], [0]
    for value, run in groupby(values):
        heights.append(value)
        edges.append(edges[-1] + len(list(run)))
    return heights, edges
