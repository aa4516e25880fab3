"""The bar plot of a section: a bar for each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyserini_compneg.reproduce.report.drawing import (
    INK,
    LINE,
    MUTED,
    PAPER,
    Look,
    Plot,
    finished,
    halo,
    label,
    new_figure,
)
from pyserini_compneg.reproduce.report.numbers import scaled, shown, unit
from pyserini_compneg.reproduce.results import Cell, Results, Row, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_HEIGHT, _FRAME_HEIGHT = 0.34, 1.1
_LABEL_LENGTH = 28
_BASELINE: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "linestyle": (0, (2, 2))}
_GAP = 6
"""Points between the end of a bar, or its whisker, and the number behind it."""


def draw_bars(section: Section, results: Results, looks: Mapping[str, Look], name: str) -> Plot | None:
    """The first measure of each row with its confidence interval, and the paper's figure; None without any figure."""
    measure = results.measures[0]
    rows = [row for row in section.rows if _ends(row.cells.get(measure, Cell()))]
    if not rows:
        return None
    labels = [label(row.name, _LABEL_LENGTH, 3) for row in rows]
    height = _FRAME_HEIGHT + _ROW_HEIGHT * sum(max(1, 0.55 * (1 + text.count("\n"))) for text in labels)
    with new_figure(height) as figure:
        axis = figure.add_subplot()
        for place, row in enumerate(rows):
            _draw_row(axis, place, row, measure, looks[row.name])
        if (baseline := _baseline(section, measure)) is not None:
            axis.axvline(scaled(baseline, measure), zorder=0.9, **_BASELINE)
        axis.set_yticks(range(len(rows)), labels)
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.grid(axis="x")
        axis.margins(x=0.1)
        axis.set_xlabel(f"{measure}{unit(measure)}")
        axis.set_title(label(section.title, LINE))
        _legend(axis, rows, measure, section, results)
        caption = f"{measure} of each method: means over the queries."
        return finished(figure, name, caption, _alt(section, rows, measure))


def _ends(cell: Cell) -> list[float]:
    """All that a bar has to leave room for."""
    ends = [cell.value, cell.published, *(cell.interval or ())]
    return [end for end in ends if end is not None]


def _draw_row(axis: Axes, place: int, row: Row, measure: str, look: Look) -> None:
    cell = row.cells[measure]
    end = scaled(max(0.0, *_ends(cell)), measure)
    if cell.value is None:
        assert cell.published is not None
        published = scaled(cell.published, measure)
        axis.barh(place, published, height=0.6, facecolor="none", edgecolor=MUTED, hatch="////", linewidth=0.8)
        text, colour = shown(cell.published, measure), MUTED
    else:
        axis.barh(place, scaled(cell.value, measure), height=0.6, color=look.colour)
        if cell.interval is not None:
            low, high = (scaled(end, measure) for end in cell.interval)
            for colour, width, size in ((PAPER, 3.0, 8), (INK, 1.1, 6)):  # an edge, to stand out on any bar
                axis.plot([low, high], [place, place], "-|", color=colour, lw=width, ms=size, mew=width)
        if cell.published is not None:
            axis.plot(scaled(cell.published, measure), place, "D", color=PAPER, markeredgecolor=INK, markersize=5)
        text, colour = shown(cell.value, measure), INK
    behind: dict[str, Any] = {"xytext": (_GAP, 0), "textcoords": "offset points", "va": "center"}
    axis.annotate(text, (end, place), color=colour, path_effects=halo(), **behind)


def _baseline(section: Section, measure: str) -> float | None:
    """The value that the other rows are compared with; None where there is none."""
    values = {row.name: row.cells[measure].value for row in section.rows if measure in row.cells}
    others = [value for name, value in values.items() if value is not None and name != section.baseline]
    return values.get(section.baseline) if others else None


def _legend(axis: Axes, rows: list[Row], measure: str, section: Section, results: Results) -> None:
    """Names the signs that the plot has; colours need no key, as each bar has its name."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    cells = [row.cells[measure] for row in rows]
    paper = "paper" if results.is_papers or not results.papers_dataset else f"paper, {results.papers_dataset}"
    signs: list[Line2D | Patch] = []
    if any(cell.interval for cell in cells):
        signs.append(Line2D([], [], color=INK, linewidth=1.1, marker="|", label="95 % interval"))
    if _baseline(section, measure) is not None:
        signs.append(Line2D([], [], label=label(section.baseline, _LABEL_LENGTH), **_BASELINE))
    if any(cell.value is not None and cell.published is not None for cell in cells):
        signs.append(Line2D([], [], color="none", marker="D", mfc=PAPER, mec=INK, markersize=5, label=paper))
    if any(cell.value is None for cell in cells):
        signs.append(Patch(facecolor="none", edgecolor=MUTED, hatch="////", linewidth=0.8, label="published only"))
    if signs:
        axis.figure.legend(handles=signs, loc="outside lower center", ncols=len(signs), fontsize=8)


def _alt(section: Section, rows: list[Row], measure: str) -> str:
    parts = []
    for row in rows:
        cell = row.cells[measure]
        ours = [] if cell.value is None else [shown(cell.value, measure)]
        paper = [] if cell.published is None else [f"paper {shown(cell.published, measure)}"]
        parts.append(f"{row.name} {', '.join(ours + paper)}")
    return f"Bars of {measure}{unit(measure)} for {section.title}: {'; '.join(parts)}."
