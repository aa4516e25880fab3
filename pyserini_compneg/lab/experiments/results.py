"""The results of an experiment: all content of its report, as data and as one JSON file."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.lab.experiments.inputs import LOWER_IS_BETTER, REMEDY, TERM_MEASURES
from pyserini_compneg.support.staging import atomic_writer

if TYPE_CHECKING:
    from pyserini_compneg.compose import ScoringNode
    from pyserini_compneg.encode.models import Head
    from pyserini_compneg.eval import Figure, PerQuery, Run
    from pyserini_compneg.lab.experiments.protocol import SectionPlan
    from pyserini_compneg.lab.experiments.rows import RowPlan
    from pyserini_compneg.topics import Topic

_logger = logging.getLogger(__name__)

_PERCENT = ("right_rank", "paired_", "delta_", *TERM_MEASURES)
"""The prefixes of the measures shown in percent: those that the papers print so, and the small shares of words."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The heaviest terms of a composed query; pairs as a∩b."""

    positive: Sequence[tuple[str, float]]  # raise a score
    negative: Sequence[tuple[str, float]]  # lower it, with weights below 0


@dataclass(slots=True)
class RowRun:
    """A row of a protocol with an encoder: its run, then its figures. A row with only published figures has neither."""

    plan: RowPlan
    name: str  # the row's title, with the encoder if there are several
    path: str | None = None  # the run file, relative to the report's folder
    run: Run = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)  # by their ids, read as the row says
    compose: Callable[[Topic], ScoringNode] | None = field(default=None, compare=False)  # None without query terms
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by the names of the measures
    per_query: PerQuery = field(default_factory=dict)
    terms: Terms | None = None  # of the query of the section

    def published(self, number: int) -> float | None:
        """The paper's figure for the measure at a position in the protocol."""
        return self.plan.published[number] if number < len(self.plan.published) else None


@dataclass(slots=True)
class Section:
    """The rows for one class of queries, in the order of the protocol."""

    plan: SectionPlan
    topics: Sequence[Topic]
    rows: list[RowRun] = field(default_factory=list)
    queries: int = 0  # the number of judged queries
    qrels: str = ""  # the file of the judgements of these queries alone: eval averages over all queries of a file
    atoms: dict[str, Mapping[str, Terms]] = field(default_factory=dict)  # of a drawn query, by row and text

    @property
    def ran(self) -> list[RowRun]:
        """The rows with runs. The first is the baseline."""
        return [row for row in self.rows if row.path is not None]


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of a measure over some queries, with its 95 % confidence interval, at a similarity or setting."""

    x: float
    y: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure against a property of the queries or a setting: the points of each method, by x."""

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, tuple[Point, ...]]
    counted: str = "queries"  # what the number of each point counts


@dataclass(frozen=True, slots=True)
class Example:
    """A query with a method's result much better or much worse than the baseline's."""

    section: str
    method: str
    baseline: str
    qid: str
    text: str
    expression: str
    measure: str
    value: float
    baseline_value: float
    positive: Sequence[tuple[str, float]]  # the heaviest terms that raise a score; pairs as a∩b
    negative: Sequence[tuple[str, float]]  # the heaviest terms that lower it, with weights below 0
    gained: Sequence[str] = ()  # titles, or ids, of relevant documents that only the method has in its top 10
    lost: Sequence[str] = ()  # of relevant documents that only the baseline has in its top 10


@dataclass(frozen=True)
class Results:
    protocol: str
    title: str
    about: str
    dataset: Mapping[str, str | int]
    settings: Mapping[str, str | int | float]  # inputs of the figures: encoder, depth, operators, versions
    command: str
    measures: tuple[str, ...]  # plots show the first
    is_papers: bool  # whether the dataset is the paper's, so that figures can be compared
    sections: Sequence[Section]
    curves: Sequence[Curve] = ()
    examples: Sequence[Example] = ()
    seconds: float = 0.0  # the duration of new runs
    runs_made: int = 0  # the number of new runs
    lower_is_better: tuple[str, ...] = ()
    statistics: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)  # the dataset's, and the paper's
    papers_dataset: str = ""  # such as QUEST; empty without published figures
    heads: Mapping[str, Head] = field(default_factory=dict)  # of the models that were run, if there are signed ones


def write_results(results: Results, path: Path) -> None:
    """Writes the results as JSON, all numbers unrounded."""
    sections = [_section(section, results.measures) for section in results.sections]
    with atomic_writer(path, REMEDY) as handle:
        json.dump({**vars(results), "sections": sections}, handle, default=asdict, ensure_ascii=False, indent=1)
        handle.write("\n")


def _section(section: Section, measures: Sequence[str]) -> dict[str, Any]:
    if section.plan.query:
        shown_rows = [
            {
                "name": row.name,
                "formula": row.plan.formula,
                "terms": row.terms,
                "published_terms": row.plan.published_terms,
                "note": row.plan.note,
            }
            for row in section.rows
        ]
        return {"title": section.plan.title, "query": section.plan.query, "rows": shown_rows, "atoms": section.atoms}
    rows = [
        {
            "name": row.name,
            "formula": row.plan.formula,
            "cells": {name: _cell(row, name, row.published(number)) for number, name in enumerate(measures)},
            "run": row.path,
            "note": row.plan.note,
        }
        for row in section.rows
    ]
    return {
        "title": section.plan.title,
        "queries": section.queries,
        "rows": rows,
        "baseline": section.ran[0].name,
        "per_query": {row.name: row.per_query for row in section.ran},
        "qrels": section.qrels,
    }


def _cell(row: RowRun, measure: str, published: float | None) -> dict[str, Any]:
    figure = row.figures.get(measure)
    if figure is None:
        return {"value": None, "interval": None, "better_than": (), "against": {}, "published": published}
    return {
        "value": figure.value,
        "interval": figure.interval,
        "better_than": figure.better_than(measure in LOWER_IS_BETTER),
        "against": {other: {"difference": one.difference, "p": one.t_test} for other, one in figure.against.items()},
        "published": published,
    }


def warn_of_lost_rows(folder: Path, chosen: Collection[str]) -> None:
    """Warns that an existing report will lose rows. A name may end with the encoder's label, as in ``row [a]``."""
    try:
        sections = json.loads((folder / "results.json").read_text("utf-8"))["sections"]
        names = [row["name"] for section in sections for row in section["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if others := {name for name in names if {name, _without_label(name)}.isdisjoint(chosen)}:
        said = "%s: the report that is there loses its other rows (%d, such as %r); their runs stay, so the command "
        said += "without --rows gives a report with all"
        _logger.warning(said, folder, len(others), min(others))


def _without_label(name: str) -> str:
    return name.rpartition(" [")[0] or name


def unit(measure: str) -> str:
    """The unit after the name of a measure: `` (%)`` or nothing.

    >>> unit("delta_recall@1"), unit("nDCG@10")
    (' (%)', '')
    """
    return " (%)" if measure.startswith(_PERCENT) else ""


def scaled(value: float, measure: str) -> float:
    """A value, which is a fraction, in the unit in which it is shown."""
    return 100 * value if unit(measure) else value


def shown_figure(value: float, measure: str) -> str:
    """A computed or published value, as text.

    >>> shown_figure(0.25847, "nDCG@10"), shown_figure(0.37093, "paired_accuracy"), shown_figure(-0.12, "delta_mrr@10")
    ('0.258', '37.09', '−12.00')
    """
    decimals = 2 if unit(measure) else 3
    rounded = round(scaled(value, measure), decimals) + 0.0  # without the sign of a negative 0
    return f"{rounded:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
