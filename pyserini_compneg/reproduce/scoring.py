"""From runs to the figures of a table: values, intervals and comparisons, beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import MeasureError, ProtocolError
from pyserini_compneg.eval import Measure, evaluate, parse_measures
from pyserini_compneg.eval.rows import PerQuery, compare_rows, make_rows
from pyserini_compneg.eval.rows import Row as EvaluatedRow
from pyserini_compneg.eval.runs import Run
from pyserini_compneg.reproduce.methods.method import Method
from pyserini_compneg.reproduce.protocol import RowPlan, SectionPlan
from pyserini_compneg.reproduce.results import Cell, Row, Section
from pyserini_compneg.reproduce.term_measures import LOWER_IS_BETTER, TERM_MEASURES, TermMeasures
from pyserini_compneg.reproduce.workplace import Workplace


@dataclass(frozen=True, slots=True)
class RanRow:
    """A row that was run.

    Attributes:
        plan: The row.
        name: Its name, with the encoder where there are several.
        method: What answered the queries.
        path: The run file.
        run: What the file has.
        topics: The queries by their ids, as the row reads their texts.
    """

    plan: RowPlan
    name: str
    method: Method
    path: Path
    run: Run
    topics: Mapping[str, Topic]


class Scorer:
    """Scores the runs of sections.

    Args:
        names: The measures: what ``eval -m`` takes, and ``TERM_MEASURES``.
        place: Has the judgements, and the documents.

    Raises:
        MeasureError: An unknown measure.
    """

    def __init__(self, names: Sequence[str], place: Workplace) -> None:
        self._place = place
        self._judged = parse_measures(name for name in names if name not in TERM_MEASURES)
        by_name = {measure.name: measure for measure in self._judged}
        for name in names:
            if name not in by_name and name not in TERM_MEASURES:
                raise MeasureError(f"measure {name!r} is several; name them one by one")
        self._measures = [by_name.get(name) or Measure(name, None) for name in names]
        self._counted = [name for name in names if name in TERM_MEASURES]
        self._terms: TermMeasures | None = None

    def section(self, plan: SectionPlan, topics: Sequence[Topic], ran: Sequence[RanRow]) -> Section:
        """The figures of a section.

        Raises:
            ProtocolError: None of its queries is judged.
        """
        judged = [topic.qid for topic in topics if topic.qid in self._place.qrels]
        if self._counted:
            judged = [qid for qid in judged if self._term_measures().measured(qid)]
        qrels = {qid: self._place.qrels[qid] for qid in judged}
        if not qrels:
            able = " and has words of few documents" if self._counted else ""
            raise ProtocolError(
                f"{self._place.dataset.folder}: no query of {plan.title!r} is judged{able} in split {self._place.split}"
            )
        results = {row.name: self._values(row.run, qrels) for row in ran}
        rows = make_rows(results, self._measures, {})
        compared = {row.run: row for row in compare_rows(rows, results, self._measures, qrels, randomise=False)}
        return Section(
            title=plan.title,
            queries=len(qrels),
            rows=tuple(self._rows(plan, ran, compared)),
            baseline=ran[0].name,
            qrels=self._place.qrels_file(plan.title, qrels),
            per_query=results,
        )

    def _values(self, run: Run, qrels: Mapping[str, Mapping[str, int]]) -> PerQuery:
        values = evaluate(qrels, run, self._judged)
        if not self._counted:
            return values
        counted = self._term_measures().values(run, list(qrels), self._counted)
        return {qid: values[qid] | counted[qid] for qid in qrels}

    def _term_measures(self) -> TermMeasures:
        if self._terms is None:
            texts = {docid: document.text or "" for docid, document in self._place.documents().items()}
            self._terms = TermMeasures(texts, self._place.topics)
        return self._terms

    def _rows(self, plan: SectionPlan, ran: Sequence[RanRow], compared: Mapping[str, EvaluatedRow]) -> list[Row]:
        """The rows in the order of the plan, those that are only published included."""
        rows = []
        for row_plan in plan.rows:
            if row_plan.method is None:
                rows.append(
                    _row(row_plan.name, row_plan, {name.name: self._cell(name, row_plan) for name in self._measures})
                )
            for row in ran:
                if row.plan is row_plan:
                    found = compared[row.name]
                    cells = {measure.name: self._cell(measure, row_plan, found) for measure in self._measures}
                    rows.append(_row(row.name, row_plan, cells, row.path.relative_to(self._place.folder).as_posix()))
        return rows

    def _cell(self, measure: Measure, plan: RowPlan, found: EvaluatedRow | None = None) -> Cell:
        name, published = measure.name, plan.published.get(measure.name)
        if found is None:
            return Cell(published=published)
        lower = name in LOWER_IS_BETTER
        better = tuple(
            one.other for one in found.comparisons.get(name, ()) if (one.is_worse if lower else one.is_better)
        )
        return Cell(found.values[name], found.intervals.get(name), better, published)


def _row(name: str, plan: RowPlan, cells: Mapping[str, Cell], run: str | None = None) -> Row:
    return Row(name, plan.formula, cells, run, " ".join(plan.note.split()))
