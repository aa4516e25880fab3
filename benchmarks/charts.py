"""Draws the charts of README.md, docs/explanations/speed.md and docs/how-to/indexing.md from records of measurements.

    python benchmarks/charts.py [--results benchmarks/results] [--output docs/images]

Each JSON file among the results is the record of one measurement; README.md beside this script describes its fields. Of
records with figures for the same series of the same panel, the newest is drawn. Each chart is one SVG file.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from pydantic import Field, model_validator

from pyserini_compneg.lab.experiments.plots import COLOURS, MUTED, SIGNS, new_figure
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.settings_files import Settings, read_settings

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"


class Chart(NamedTuple):
    """What the axes of a chart say."""

    x: str
    y: str = ""
    """Of a curve. A chart without it has a line of dots for each row, on a linear axis."""
    reference: str = ""
    """The name of the value 1, if the chart has ratios."""
    is_quality: bool = False
    """The chart has bars and no times."""


BASELINES = ("#c3c9cf", "#7d8790")
"""The colours of all series but the last in a chart of bars, which shows what the last gains."""

PER_STOCK = "time / time of stock Lucene"

CHARTS = {
    "engines": Chart("time / time of Qdrant Edge", reference="Qdrant Edge"),
    "growth": Chart("b: the time of a query grows as n^b for n documents", reference="as the collection"),
    "worst-case": Chart("documents", "time of a query, ms"),
    "forms": Chart(PER_STOCK, reference="stock Lucene"),
    "operators": Chart("time of the default / time of the other", reference="same time"),
    "default": Chart(PER_STOCK, reference="stock Lucene"),
    "threads": Chart("threads", "queries a second"),
    "pairs": Chart("bytes a document", "hits of the factored form that the pairs find, %"),
    "quality": Chart("nDCG@10", is_quality=True),
}

Number = Annotated[float, Field(gt=0)]
Series = dict[str, Number | Annotated[tuple[Number, ...], Field(min_length=1)]]
Panels = dict[str, dict[str, Series]]


class Record(Settings):
    """One measurement."""

    chart: str
    measured: str
    collection: str
    command: str | None
    commit: str | None
    lucene: Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    machine: str
    figures: Panels

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Record:
        if self.chart not in CHARTS:
            raise ValueError(f"unknown chart {self.chart!r}; known are {', '.join(CHARTS)}")
        points = (x for panel in self.figures.values() for series in panel.values() for x in series)
        if CHARTS[self.chart].y and (wrong := next((x for x in points if not x.isdecimal()), None)) is not None:
            raise ValueError(f"{CHARTS[self.chart].x}: expected a whole number, got {wrong!r}")
        return self


def newest(records: Sequence[Record]) -> dict[str, Panels]:
    """The figures of each chart: for each series of a panel, those of its newest record."""
    charts: dict[str, Panels] = {name: {} for name in CHARTS}
    for record in sorted(records, key=lambda record: (record.date, float(record.lucene or 0))):
        for panel, series in record.figures.items():
            charts[record.chart].setdefault(panel, {}).update(series)
    return charts


def runs(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def draw_dots(chart: Chart, panels: Panels) -> Figure:
    """A dot for each series and row; for several runs, a dot for each end of their range, and a line between."""
    rows = list(dict.fromkeys(row for panel in panels.values() for series in panel.values() for row in series))
    columns = min(2, len(panels))
    lines = math.ceil(len(panels) / columns)
    with new_figure(1.2 + lines * (0.5 + 0.36 * len(rows))) as figure:
        axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for axis, (title, panel) in zip(axes.flat, panels.items(), strict=False):
            axis.set_title(title)
            for number, (name, series) in enumerate(panel.items()):
                shift = 0.2 * (number - (len(panel) - 1) / 2)
                for row, value in series.items():
                    ends = [min(runs(value)), max(runs(value))]
                    axis.plot(
                        ends,
                        [rows.index(row) + shift] * 2,
                        SIGNS[number][0] + "-",
                        color=COLOURS[number],
                        label=name,
                        ms=5,
                    )
            if chart.reference:
                axis.axvline(1, color=MUTED, linestyle="--", linewidth=1, label=chart.reference)
            axis.grid()
        for axis in axes[-1]:
            axis.set_xlabel(chart.x)
        axes[0, 0].set_yticks(range(len(rows)), rows)
        axes[0, 0].set_ylim(len(rows) - 0.5, -0.5)
        axes[0, 0].set_xlim(0, 1.03 * axes[0, 0].get_xlim()[1])
        add_legend(figure, list(axes.flat))
        return figure


def draw_bars(chart: Chart, panels: Panels) -> Figure:
    """A group of bars for each row, with a bar for each series that has the row."""
    rows = list(dict.fromkeys(row for panel in panels.values() for series in panel.values() for row in series))
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    colours = dict(zip(names, (*BASELINES, COLOURS[0])[-len(names) :], strict=True))
    with new_figure(3.0) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            axis.set(title=title, xlabel=chart.x)
            for number, (name, series) in enumerate(panel.items()):
                places = [rows.index(row) + 0.8 * ((number + 0.5) / len(panel) - 0.5) for row in series]
                values = [median(runs(value)) for value in series.values()]
                bars = axis.barh(places, values, 0.8 / len(panel), color=colours[name], label=name)
                axis.bar_label(bars, fmt="%.3f", padding=3)
        axes[0].set_yticks(range(len(rows)), rows)
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
        axes[0].set_xlim(0, 1.12 * axes[0].get_xlim()[1])
        add_legend(figure, axes)
        return figure


def draw_curves(chart: Chart, panels: Panels) -> Figure:
    """A curve for each series, on logarithmic axes; for several runs, their median and their range."""
    with new_figure(4.2) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            axis.set(xscale="log", yscale="log", xlabel=chart.x, title=title)
            for (name, series), colour, sign in zip(panel.items(), cycle(COLOURS), cycle(SIGNS), strict=False):
                xs, values = [int(x) for x in series], [sorted(runs(value)) for value in series.values()]
                ys = [own[len(own) // 2] for own in values]
                below = [y - own[0] for y, own in zip(ys, values, strict=True)]
                above = [own[-1] - y for y, own in zip(ys, values, strict=True)]
                axis.errorbar(xs, ys, (below, above), fmt=sign, color=colour, ms=5, label=name)
            axis.grid()
        sizes = sorted({int(x) for panel in panels.values() for series in panel.values() for x in series})
        if all(size >= 1.5 * before for before, size in pairwise(sizes)):
            axes[0].set_xticks(sizes, [f"{size:,}" for size in sizes])
        else:  # their labels would overlap
            axes[0].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes[0].xaxis.set_minor_locator(NullLocator())
        axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes[0].yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes[0].yaxis.set_minor_locator(NullLocator())
        axes[0].set_ylabel(chart.y)
        add_legend(figure, axes)
        return figure


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, with each name once; and a margin around all."""
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.1)
    named = {name: line for axis in axes for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))


def svg(name: str, panels: Panels) -> bytes:
    """A chart as a file. Its description has the figures, so that a file shows what it was drawn from."""
    chart, file = CHARTS[name], io.BytesIO()
    about: dict[str, Any] = {"Date": None, "Creator": None, "Description": json.dumps(panels)}
    draw = draw_bars if chart.is_quality else draw_curves if chart.y else draw_dots
    figure = draw(chart, panels)
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata=about)
    return file.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Draws all charts, or none if a record is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="the records")
    parser.add_argument("--output", type=Path, default=IMAGES, metavar="FOLDER", help="where the charts go")
    options = parser.parse_args(arguments)
    try:
        records = [read_settings(path, Record, CompNegError) for path in sorted(options.results.glob("*.json"))]
    except CompNegError as error:
        print(f"charts.py: {error}", file=sys.stderr)
        return error.exit_code
    drawn: Mapping[str, bytes] = {name: svg(name, panels) for name, panels in newest(records).items() if panels}
    for name, content in drawn.items():
        (options.output / f"{'' if CHARTS[name].is_quality else 'speed-'}{name}.svg").write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
