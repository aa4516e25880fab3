"""Sections as tables of texts, which every format of the report renders alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyserini_compneg.datasets.opening import TITLES
from pyserini_compneg.eval.significance import LEVEL
from pyserini_compneg.eval.table import row_letters, superscript
from pyserini_compneg.reproduce.report.commands import eval_command, uncomputed
from pyserini_compneg.reproduce.report.numbers import formula_parts, shown, shown_difference, shown_interval, unit
from pyserini_compneg.reproduce.results import Cell, Results, Row, Section


@dataclass(frozen=True, slots=True)
class Entry:
    """One measure of one row; texts are empty where there is nothing to show.

    Attributes:
        value: Our value.
        letters: The letters of the rows that it is significantly better than.
        interval: Its 95 % confidence interval.
        is_best: Whether no row of the table is shown with a better value of ours.
        published: The paper's figure.
    """

    value: str
    letters: str
    interval: str
    is_best: bool
    published: str


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a measure.

    Attributes:
        title: Its name and its unit.
        has_paper: Whether the paper's figures stand beside ours.
    """

    title: str
    has_paper: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One method.

    Attributes:
        letter: What names it in superscripts; empty where nothing was compared with it.
        name: The method.
        formula: What it computes, in parts, each with whether it is an index.
        entries: In the order of the columns.
        note: The number of its footnote, from 1; 0 is none.
        is_published_only: Whether it was not run here.
        command: What recomputes its values from its run file; empty if there is no run.
    """

    letter: str
    name: str
    formula: tuple[tuple[str, bool], ...]
    entries: tuple[Entry, ...]
    note: int
    is_published_only: bool
    command: str


@dataclass(frozen=True, slots=True)
class Table:
    """A section, ready to be rendered.

    Attributes:
        title: Of the section.
        queries: How many, in words.
        finding: The best method and the baseline, in a sentence; empty where nothing was run.
        columns: One for each measure.
        lines: In the order of the protocol.
        notes: The footnotes, the first is number 1.
        legend: What there is to explain, in sentences: ``letters``, ``best``, ``lower`` (is better), ``interval``,
            ``paper``, ``published``.
        command: What recomputes the whole table from its run files, letters included; empty where nothing was run.
        uncomputed: What this command leaves out, and why, in a sentence; empty where it leaves out nothing.
    """

    title: str
    queries: str
    finding: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    legend: Mapping[str, str]
    command: str
    uncomputed: str

    @property
    def has_paper(self) -> bool:
        """Whether the paper's figures stand beside ours in some column."""
        return any(column.has_paper for column in self.columns)

    @property
    def has_letters(self) -> bool:
        """Whether the lines have letters."""
        return any(line.letter for line in self.lines)

    @property
    def row_commands(self) -> dict[str, str]:
        """What recomputes each row by itself, by its name; empty where the whole table is one row."""
        found = {line.name: line.command for line in self.lines if line.command}
        return found if len(found) > 1 else {}

    @property
    def most_letters(self) -> int:
        """The length of the longest superscript."""
        return max((len(entry.letters) for line in self.lines for entry in line.entries), default=0)


def make_table(section: Section, results: Results) -> Table:
    """The table of a section of some results."""
    measures = results.measures
    columns = tuple(
        Column(f"{measure}{unit(measure)}", any(_cell(row, measure).published is not None for row in section.rows))
        for measure in measures
    )
    run = [row for row in section.rows if not _is_published_only(row)]
    letters = row_letters(row.name for row in run) if _is_compared(section, run) else {}
    best = {measure: _best(section, results, measure) for measure in measures}
    notes = tuple(dict.fromkeys(row.note for row in section.rows if row.note))
    lines = tuple(
        Line(
            letter=letters.get(row.name, ""),
            name=row.name,
            formula=tuple(formula_parts(row.formula)),
            entries=tuple(_entry(_cell(row, measure), measure, letters, best[measure]) for measure in measures),
            note=notes.index(row.note) + 1 if row.note else 0,
            is_published_only=_is_published_only(row),
            command=eval_command(section, [row], measures),
        )
        for row in section.rows
    )
    return Table(
        title=section.title,
        queries=f"{section.queries:,} {'query' if section.queries == 1 else 'queries'}",
        finding=_finding(section, results),
        columns=columns,
        lines=lines,
        notes=notes,
        legend=_legend(lines, columns, results),
        command=eval_command(section, run, measures),
        uncomputed=uncomputed(run, measures),
    )


def provenance_warning(results: Results) -> str:
    """Says that the dataset is not the paper's; empty where it is, and where there are no figures of a paper."""
    if results.is_papers or not results.papers_dataset:
        return ""
    kind = str(results.dataset.get("kind", ""))
    other = results.papers_dataset
    return (
        f"{TITLES.get(kind, 'This dataset')}, which is not {other}. The paper's figures are for {other}: beside ours, "
        "only their order can be compared, not their size."
    )


def best_row(section: Section, results: Results, measure: str) -> Row | None:
    """The row with the best value of ours, the first of equals."""
    values = {row.name: value for row in section.rows if (value := _cell(row, measure).value) is not None}
    choose = min if measure in results.lower_is_better else max
    name = choose(values, key=values.__getitem__, default=None)
    return next((row for row in section.rows if row.name == name), None)


def _cell(row: Row, measure: str) -> Cell:
    return row.cells.get(measure, Cell())


def _is_published_only(row: Row) -> bool:
    return all(cell.value is None for cell in row.cells.values())


def _is_compared(section: Section, run: Sequence[Row]) -> bool:
    return len(run) > 1 and section.queries > 1


def _best(section: Section, results: Results, measure: str) -> str | None:
    """The best value as it is shown, so that what looks equal is equal; None where there is no choice."""
    if sum(_cell(row, measure).value is not None for row in section.rows) < 2:
        return None
    row = best_row(section, results, measure)
    return None if row is None else _entry(_cell(row, measure), measure, {}, None).value


def _entry(cell: Cell, measure: str, letters: Mapping[str, str], best: str | None) -> Entry:
    value = "" if cell.value is None else shown(cell.value, measure)
    return Entry(
        value=value,
        letters=superscript(letters, cell.better_than),
        interval="" if cell.interval is None else shown_interval(cell.interval, measure),
        is_best=bool(value) and value == best,
        published="" if cell.published is None else shown(cell.published, measure),
    )


def _finding(section: Section, results: Results) -> str:
    measure = results.measures[0]
    values = {row.name: value for row in section.rows if (value := _cell(row, measure).value) is not None}
    best = best_row(section, results, measure)
    if best is None or len(values) < 2:
        return ""
    sentence = f"Best {measure}{unit(measure)}: {best.name}, {shown(values[best.name], measure)}"
    if best.name == section.baseline or section.baseline not in values:
        return f"{sentence}."
    difference = shown_difference(values[best.name] - values[section.baseline], measure)
    return f"{sentence} ({difference} against {section.baseline})."


def _legend(lines: Sequence[Line], columns: Sequence[Column], results: Results) -> dict[str, str]:
    entries = [entry for line in lines for entry in line.entries]
    found = {}
    if any(line.letter for line in lines):
        test = f"paired t-test, p < {LEVEL}, Holm's correction over all pairs of rows"
        named = "A superscript names the methods that a value is significantly better than"
        marked = any(entry.letters for entry in entries)
        found["letters"] = f"{named if marked else 'No value is significantly better than another'} ({test})."
    if any(entry.is_best for entry in entries):
        found["best"] = "Bold: the best value of ours."
    if results.lower_is_better:
        found["lower"] = f"Lower is better for {' and '.join(results.lower_is_better)}."
    if any(entry.interval for entry in entries):
        found["interval"] = "Small print: the 95 % confidence interval of the mean."
    if any(column.has_paper for column in columns):
        other = results.papers_dataset or "its own dataset"
        where = "" if results.is_papers else f", for {other}: compare the order, not the size"
        found["paper"] = f"Paper: the published figure{where}."
    if any(line.is_published_only for line in lines):
        found["published"] = "Grey: published, not run here."
    return found
