"""What all plots share: colours, a style of their own, and the way to PNG and SVG, byte for byte the same each time."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyserini_compneg.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, RULE, PAPER = "#1b1f24", "#59626c", "#d3d8de", "#ffffff"
_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--surface)"}
"""The colours that the page replaces by its own, which are others on a dark screen."""

WIDTH = 9.0
"""Of all plots, in inches: the width of the page's column."""

LINE = 100
"""Characters of a title, or of the label of an axis, in a plot of that width."""

_BASELINE = "#7d8790"
_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#8c6bb1", "#a6761d", "#44aa99", "#999933", "#c0504d", "#4f81bd"),
)
"""The first six are those of Okabe and Ito, which the colour-blind can tell apart; all show on white and on black."""

_MARKERS = "osD^vPX*"
_LINES = ("-", "--", "-.", ":")

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # matplotlib brings it along
    "font.size": 9,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "hatch.color": MUTED,
    "svg.fonttype": "path",
    "savefig.dpi": 200,
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a method looks in every plot.

    Attributes:
        colour: As ``#rrggbb``.
        marker: Matplotlib's sign for the points of a curve.
        line: Matplotlib's sign for its line.
    """

    colour: str
    marker: str
    line: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A finished plot.

    Attributes:
        name: Of its file, without a suffix.
        caption: What it shows, and how to read it.
        alt: What it shows, for those who do not see it.
        png: The file.
        svg: An ``<svg>`` element for a page with the colours ``--ink``, ``--muted``, ``--rule`` and ``--surface``.
    """

    name: str
    caption: str
    alt: str
    png: bytes
    svg: str


def looks(results: Results) -> Mapping[str, Look]:
    """A look for each method; those of curves, where colour matters most, get the colours that differ most.

    Rows that a curve has as the points of one line, ``NRF, λ = 0.1`` of ``NRF``, look like the line.
    """
    lines = list(chain.from_iterable(curve.series for curve in results.curves))
    rows = [row.name for section in results.sections for row in section.rows]
    line_of = {name: next((line for line in lines if name.startswith(f"{line}, ")), name) for name in rows}
    baselines = {section.baseline for section in results.sections}
    others = [name for name in dict.fromkeys(chain(lines, line_of.values())) if name not in baselines]
    found = {name: Look(_BASELINE, "o", "-") for name in baselines}
    for place, name in enumerate(others):
        colour, marker, line = (signs[place % len(signs)] for signs in (_COLOURS, _MARKERS, _LINES))
        found[name] = Look(colour, marker, line)
    return found | {name: found[line] for name, line in line_of.items() if name not in found}


@contextmanager
def new_figure(height: float) -> Iterator[Figure]:
    """An empty figure in the style of the report, whatever the user's settings of matplotlib are.

    Args:
        height: In inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def halo() -> list[Any]:
    """What keeps a text legible on a line that crosses it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground=PAPER)]


def label(text: str, width: int, lines: int = 1) -> str:
    r"""A text as far as there is room for it in a plot; the page has it whole.

    Args:
        text: Any text.
        width: Characters a line.
        lines: The most lines.

    >>> label("films and books on film", 10, 2)
    'films and\nbooks on …'
    """
    return "\n".join(textwrap.wrap(text, width, max_lines=lines, placeholder=" …"))


def finished(figure: Figure, name: str, caption: str, alt: str) -> Plot:
    """The figure as PNG and SVG; to be called while the figure's context is open."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box then stands for the character
        return Plot(name, caption, alt, _png(figure), _svg(figure, name))


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _svg(figure: Figure, name: str) -> str:
    """The element alone: no namespaces, which HTML knows, no comments, no style that would reach beyond it."""
    import matplotlib

    file = io.StringIO()
    nothing: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    view_box = re.search(r'viewBox="0 0 (\S+) (\S+)"', text)
    assert view_box is not None
    text = re.sub(r"<!--.*?-->\s*|<style.*?</style>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)  # ids are of the whole page
    for colour, variable in _THEME.items():
        text = text.replace(colour, variable)
    return re.sub(
        r"<svg.*?>", f'<svg viewBox="{view_box[0][9:-1]}" width="{view_box[1]}pt">', text, count=1, flags=re.DOTALL
    )
