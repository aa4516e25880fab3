"""All that a report holds, in the order in which it is read, whatever format it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyserini_compneg.reproduce.report.bars import draw_bars
from pyserini_compneg.reproduce.report.curves import draw_curve
from pyserini_compneg.reproduce.report.differences import draw_differences
from pyserini_compneg.reproduce.report.drawing import Plot, looks
from pyserini_compneg.reproduce.report.examples import Group, make_groups
from pyserini_compneg.reproduce.report.numbers import shown_seconds, shown_setting
from pyserini_compneg.reproduce.report.tables import Table, make_table, provenance_warning
from pyserini_compneg.reproduce.results import Results


@dataclass(frozen=True, slots=True)
class Part:
    """A section: its table and its plots, as far as there are any."""

    table: Table
    plots: tuple[Plot, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """A report, ready to be rendered; all texts are plain, to be escaped by the format.

    Attributes:
        title: Of the report.
        about: What it shows, a few sentences.
        warning: That the dataset is not the paper's; empty where it is.
        dataset: What it was made on: name to text.
        command: What made it.
        parts: The sections.
        curves: The plots of curves.
        examples: Cards of queries, by the title of their section.
        settings: How it was made: name to text.
        effort: How many runs were made, and how long that took, in words.
    """

    title: str
    about: str
    warning: str
    dataset: Mapping[str, str]
    command: str
    parts: tuple[Part, ...]
    curves: tuple[Plot, ...]
    examples: Mapping[str, tuple[Group, ...]]
    settings: Mapping[str, str]
    effort: str

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All plots."""
        return tuple(plot for part in self.parts for plot in part.plots) + self.curves


def make_contents(results: Results) -> Contents:
    """Makes the tables and draws the plots of some results."""
    return Contents(
        title=results.title,
        about=results.about,
        warning=provenance_warning(results),
        dataset={name: shown_setting(value) for name, value in results.dataset.items()},
        command=results.command,
        parts=_parts(results),
        curves=_curves(results),
        examples=make_groups(results),
        settings={name: shown_setting(value) for name, value in results.settings.items()},
        effort=_effort(results),
    )


def _parts(results: Results) -> tuple[Part, ...]:
    styles = looks(results)
    found = []
    for number, section in enumerate(results.sections, 1):
        plots = (
            draw_bars(section, results, styles, f"section-{number}-bars"),
            draw_differences(section, results, styles, f"section-{number}-differences"),
        )
        found.append(Part(make_table(section, results), tuple(plot for plot in plots if plot)))
    return tuple(found)


def _curves(results: Results) -> tuple[Plot, ...]:
    styles = looks(results)
    plots = (draw_curve(curve, styles, f"curve-{number}") for number, curve in enumerate(results.curves, 1))
    return tuple(plot for plot in plots if plot)


def _effort(results: Results) -> str:
    runs = sum(row.run is not None for section in results.sections for row in section.rows)
    if results.runs_made == 0:
        return f"All {runs} runs were there already."
    took = f"{results.runs_made} of {runs} runs were made, in {shown_seconds(results.seconds)}"
    return f"{took}; the others were there already." if results.runs_made < runs else f"{took}."
