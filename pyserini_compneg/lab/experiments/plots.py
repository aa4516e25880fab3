"""The plots of a report as PNG files, bars and curves. Equal results give equal bytes."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from pyserini_compneg.lab.experiments.results import Curve, Results, RowRun, Section, Terms, scaled, shown_figure, unit

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from pyserini_compneg.encode.models import Head

_INK, MUTED, _RULE, _BAR = "#1b1f24", "#7d8790", "#d3d8de", "#0072b2"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The colours of Okabe and Ito without yellow, which is faint on white. Colour-blind readers can distinguish them."""

SIGNS = ("o-", "s--", "D-.", "^:", "v-", "P--", "X-.", "*:")
_WIDTH = 9.0  # inches
_LABEL_LENGTH = 28
_DRAWN_TERMS = 6

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # part of matplotlib
    "font.size": 9,
    "text.parse_math": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "legend.frameon": False,
    "savefig.dpi": 120,
}


def draw_bars(section: Section, results: Results) -> bytes | None:
    """A bar for each row with the first measure, its interval and the paper's figure; None if there are no figures."""
    measure = results.measures[0]
    rows = [row for row in section.rows if measure in row.figures or row.published(0) is not None]
    if not rows:
        return None
    with new_figure(1.1 + 0.34 * len(rows)) as figure:
        axis = figure.add_subplot()
        for height, row in enumerate(rows):
            _draw_bar(axis, height, row, measure)
        axis.set_yticks(range(len(rows)), [_wrapped(row.name) for row in rows])
        axis.invert_yaxis()
        axis.grid(axis="x")
        axis.margins(x=0.1)
        axis.set_xlabel(f"{measure}{unit(measure)}")
        axis.set_title(section.plan.title)
        handles, labels = axis.get_legend_handles_labels()
        if named := dict(zip(labels, handles, strict=True)):
            figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))
        return _png(figure)


def _draw_bar(axis: Axes, height: int, row: RowRun, measure: str) -> None:
    figure, published = row.figures.get(measure), row.published(0)
    value = figure.value if figure else published
    assert value is not None
    interval = figure.interval if figure else None
    ends = [scaled(end, measure) for end in (value, *(interval or ()), published or 0.0, 0.0)]
    if figure is None:
        axis.barh(height, ends[0], 0.6, facecolor="none", edgecolor=MUTED, hatch="////", label="published only")
    else:
        axis.barh(height, ends[0], 0.6, color=_BAR)
        if interval is not None:
            axis.plot(ends[1:3], [height, height], "-|", color=_INK, label="95 % interval")
        if published is not None:
            axis.plot(scaled(published, measure), height, "D", color="white", mec=_INK, ms=5, label="paper")
    axis.annotate(shown_figure(value, measure), (max(ends), height), (6, 0), textcoords="offset points", va="center")


def draw_shares(section: Section, measures: Sequence[str]) -> bytes:
    """The shares of several kinds of words in each row, with their intervals, as in Figure 1 of Widdows 2003."""
    rows, width = section.ran, 0.8 / len(measures)
    with new_figure(4.2) as figure:
        axis = figure.add_subplot()
        for number, (measure, colour) in enumerate(zip(measures, cycle(COLOURS), strict=False)):
            places = [place + width * (number - (len(measures) - 1) / 2) for place in range(len(rows))]
            heights = [scaled(row.figures[measure].value, measure) for row in rows]
            axis.bar(places, heights, width, color=colour, label=measure.replace("_", " "))
            for place, row in zip(places, rows, strict=True):
                if interval := row.figures[measure].interval:
                    ends = [scaled(end, measure) for end in interval]
                    axis.plot([place, place], ends, "-", color=_INK, linewidth=0.8)
        axis.set_xticks(range(len(rows)), [_wrapped(row.name) for row in rows])
        axis.set_ylabel(f"share of all words{unit(measures[0])}")
        axis.grid(axis="y")
        axis.set_title(section.plan.title)
        figure.legend(loc="outside lower center", ncols=len(measures))
        return _png(figure)


def draw_curve(curve: Curve) -> bytes | None:
    """A line for each method, with 95 % intervals; None if there are no points."""
    if not any(curve.series.values()):
        return None
    with new_figure(4.6) as figure:
        axis = figure.add_subplot()
        for (method, points), colour, sign in zip(curve.series.items(), cycle(COLOURS), cycle(SIGNS), strict=False):
            ys = [scaled(point.y, curve.y_label) for point in points]
            low = [scaled(max(0.0, point.y - point.low), curve.y_label) for point in points]
            high = [scaled(max(0.0, point.high - point.y), curve.y_label) for point in points]
            style: dict[str, Any] = {
                "color": colour,
                "capsize": 2,
                "ms": 5,
                "elinewidth": 0.8,
                "label": _wrapped(method),
            }
            axis.errorbar([point.x for point in points], ys, (low, high), fmt=sign, **style)
        axis.set_title(curve.title)
        axis.set_xlabel(curve.x_label)
        axis.set_ylabel(f"{curve.y_label}{unit(curve.y_label)}")
        axis.set_ylim(
            *_limits(axis.get_ylim(), [point.y for points in curve.series.values() for point in points], curve)
        )
        axis.grid(axis="y")
        figure.legend(loc="outside right center")
        return _png(figure)


def draw_framework(section: Section) -> bytes | None:
    """The vectors of a query's atoms in the first row, and below them of the query in each row, as in Figure 1."""
    rows = [(row.name, row.terms, section.atoms[row.name]) for row in section.rows if row.terms and section.atoms]
    if not rows:
        return None
    columns = max(len(atoms) + 1 for _, _, atoms in rows)
    with new_figure(0.6 + 2.6 * len(rows)) as figure:
        panels = figure.subplots(len(rows), columns, squeeze=False)
        for axes, (name, terms, atoms) in zip(panels, rows, strict=True):
            vectors = {**{f"f({text})": vector for text, vector in atoms.items()}, name: terms}
            for number, (axis, (title, vector)) in enumerate(zip(axes, vectors.items(), strict=False)):
                _draw_terms(axis, vector, title, _BAR if number < len(atoms) else COLOURS[2])
        figure.suptitle(section.plan.query)
        return _png(figure)


def _draw_terms(axis: Axes, terms: Terms, title: str, colour: str) -> None:
    """A bar for each of the heaviest terms; those that lower a score have the colour of a warning."""
    shown_terms = [*terms.positive[:_DRAWN_TERMS], *terms.negative[:_DRAWN_TERMS]]
    heights = range(len(shown_terms))
    weights = [weight for _, weight in shown_terms]
    axis.barh(heights, weights, 0.6, color=[colour if weight > 0 else COLOURS[1] for weight in weights])
    axis.set_yticks(heights, [_wrapped(term) for term, _ in shown_terms])
    axis.invert_yaxis()
    axis.axvline(0, color=MUTED, linewidth=0.8)
    axis.set_title(_wrapped(title))


def draw_activations(heads: Mapping[str, Head]) -> bytes:
    """The weight of a term by its logit in one token, for each model, with its ε, as in Figure 2."""
    import numpy as np

    end = max(10.0, *(2 * head.epsilon for head in heads.values()))
    logits = np.linspace(-end, end, 401)
    with new_figure(3.8) as figure:
        axis = figure.add_subplot()
        for (name, head), colour, sign in zip(heads.items(), cycle(COLOURS), cycle(SIGNS), strict=False):
            epsilon = f", ε = {head.epsilon:g}" if head.signed else ""
            label = _wrapped(f"{name}: {head.activation}{epsilon}")
            axis.plot(logits, activated(logits, head), sign, color=colour, label=label, markevery=40, ms=4)
        axis.set_xlabel("logit of a term")
        axis.set_ylabel("weight")
        axis.grid()
        figure.legend(loc="outside right center")
        return _png(figure)


def activated(logits: NDArray[np.float64], head: Head) -> NDArray[np.float64]:
    import numpy as np

    weights = np.log1p(np.maximum(np.abs(logits) - head.epsilon, 0.0))
    if head.signed:
        return np.sign(logits) * weights
    weights = np.where(logits > 0, weights, 0.0)
    return np.log1p(weights) if head.activation == "log1p_relu" else weights


def _limits(limits: tuple[float, float], ys: Sequence[float], curve: Curve) -> tuple[float, float]:
    """Limits within the range of the measure: an interval may exceed it. Changes of a measure may be below 0."""
    lowest, highest = (scaled(end, curve.y_label) for end in (-1.0 if min(ys) < 0 else 0.0, 1.0))
    return max(lowest, limits[0]), min(highest, limits[1])


@contextmanager
def new_figure(height: float) -> Iterator[Figure]:
    """An empty figure with a height in inches, in the report's style, regardless of the user's matplotlib settings."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(_STYLE, after_reset=True):
        yield Figure(figsize=(_WIDTH, height), layout="constrained")


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # matplotlib then draws a box
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _LABEL_LENGTH, max_lines=2, placeholder=" …"))
