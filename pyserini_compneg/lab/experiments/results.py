"""The results of an experiment: everything that its report shows, as data, and as one JSON file."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyserini_compneg.support.staging import atomic_writer

_logger = logging.getLogger(__name__)

SYNONYMS = "negated_synonyms"
TERM_MEASURES = ("positive_terms", "negated_terms", "negated_neighbours", SYNONYMS)
"""The measures that count words of the first documents; all others are those of ``eval``."""

LOWER_IS_BETTER = ("negated_terms", "negated_neighbours", SYNONYMS)

REMEDY = "choose another place with --report"
"""What messages advise where a file of a report cannot be written."""

_PERCENT = ("right_rank", "paired_", "delta_", *TERM_MEASURES)
"""The beginnings of the names of measures that the papers print in percent, and shares of words, which are small."""

Weight = tuple[str, float]
"""A term and its weight in the composed query."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one row.

    Attributes:
        value: The mean over the queries; None where the row is only published, not run here.
        interval: The 95 % confidence interval of the mean.
        better_than: The names of the rows of the section that it is significantly better than (paired t-test, Holm).
        published: The figure in the paper, in the same unit.
    """

    value: float | None = None
    interval: tuple[float, float] | None = None
    better_than: tuple[str, ...] = ()
    published: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One method in one section of a table.

    Attributes:
        name: The method.
        formula: What it computes, in mathematical notation with Unicode signs, such as ``A − B*``.
        cells: By the names of the measures.
        run: The run file, relative to the report's folder; None where the row is only published.
        note: What the reader has to know about this row; empty for nothing.
    """

    name: str
    formula: str
    cells: Mapping[str, Cell]
    run: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The rows for one class of queries.

    Attributes:
        title: Such as ``Set difference``.
        queries: How many there are.
        rows: In the order of the protocol.
        baseline: The row that differences are shown against.
        per_query: ``{row name: {query id: {measure: value}}}``.
        qrels: The judgements of just these queries, relative to the report's folder: ``eval`` takes means over all
            queries of a file.
    """

    title: str
    queries: int
    rows: tuple[Row, ...]
    baseline: str
    per_query: Mapping[str, Mapping[str, Mapping[str, float]]] = field(repr=False)
    qrels: str


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of a method over some queries.

    Attributes:
        x: The mean similarity of the queries, or the value of the setting.
        y: The mean of the measure.
        low: Lower end of its 95 % confidence interval.
        high: Upper end.
        queries: How many queries there are.
    """

    x: float
    y: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure against a property of the queries.

    Attributes:
        title: What is shown.
        x_label: The property.
        y_label: The measure.
        series: ``{method: its points, by x}``.
    """

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, tuple[Point, ...]]


@dataclass(frozen=True, slots=True)
class Example:
    """A query that a method answers much better or much worse than the baseline.

    Attributes:
        section: The title of its section.
        method: The row.
        baseline: The row that it is compared with.
        qid: The query.
        text: Its text.
        expression: What was composed.
        measure: The measure.
        value: The method's value.
        baseline_value: The baseline's value.
        positive: The heaviest terms that raise a score, pairs as ``a∩b``.
        negative: The heaviest terms that lower it, with weights below 0.
        gained: Titles, or ids, of relevant documents that only the method has in its top 10.
        lost: Titles, or ids, of relevant documents that only the baseline has in its top 10.
    """

    section: str
    method: str
    baseline: str
    qid: str
    text: str
    expression: str
    measure: str
    value: float
    baseline_value: float
    positive: tuple[Weight, ...]
    negative: tuple[Weight, ...]
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one protocol on one dataset.

    Attributes:
        protocol: Its name, such as ``table1``.
        title: Its title.
        about: What it shows, where it is from, and how it differs from its source, in a few sentences.
        dataset: ``name``, ``kind``, ``split``, ``provenance``, ``documents``, ``queries``.
        settings: Encoder, index, depth, operators' settings, versions: name to value, in the order to be shown.
        command: The command that made it.
        measures: The names of the measures; plots show the first.
        is_papers: Whether the dataset is the paper's own, so that figures can be compared as they are.
        sections: The tables.
        curves: The curves, if the protocol has any.
        examples: The best and the worst queries.
        seconds: How long it took to make runs.
        runs_made: How many runs were made; the others were there already.
        lower_is_better: The measures whose lower values are better.
        papers_dataset: The dataset of the paper, such as ``QUEST``; empty where there are no figures of a paper.
    """

    protocol: str
    title: str
    about: str
    dataset: Mapping[str, str | int]
    settings: Mapping[str, str | int | float]
    command: str
    measures: tuple[str, ...]
    is_papers: bool
    sections: tuple[Section, ...]
    curves: tuple[Curve, ...] = ()
    examples: tuple[Example, ...] = ()
    seconds: float = 0.0
    runs_made: int = 0
    lower_is_better: tuple[str, ...] = ()
    papers_dataset: str = ""


def write_results(results: Results, path: Path) -> None:
    """Writes the results as JSON, all numbers unrounded."""
    with atomic_writer(path, REMEDY) as handle:
        json.dump(asdict(results), handle, ensure_ascii=False, indent=1)
        handle.write("\n")


def warn_of_lost_rows(folder: Path, chosen: Collection[str]) -> None:
    """Says that a report which is there will lose rows. A name may end with the encoder's label, as in ``row [a]``."""
    try:
        sections = json.loads((folder / "results.json").read_text("utf-8"))["sections"]
        names = [row["name"] for section in sections for row in section["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if others := {name for name in names if not {name, name.rpartition(" [")[0]} & {*chosen}}:
        said = "%s: the report that is there loses its other rows (%d, such as %r); their runs stay, so the command "
        said += "without --rows gives a report with all"
        _logger.warning(said, folder, len(others), min(others))


def unit(measure: str) -> str:
    """The unit that stands after the name of a measure: `` (%)`` or nothing.

    >>> unit("delta_recall@1"), unit("nDCG@10")
    (' (%)', '')
    """
    return " (%)" if measure.startswith(_PERCENT) else ""


def scaled(value: float, measure: str) -> float:
    """A value, which is a fraction, in the unit that it is shown in."""
    return 100 * value if unit(measure) else value


def shown(value: float, measure: str) -> str:
    """A value, ours or a published one.

    >>> shown(0.25847, "nDCG@10"), shown(0.37093, "paired_accuracy"), shown(-0.12, "delta_mrr@10")
    ('0.258', '37.09', '−12.00')
    """
    decimals = 2 if unit(measure) else 3
    rounded = round(scaled(value, measure), decimals) + 0.0  # without the sign of a negative 0
    return f"{rounded:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
