"""From runs to the figures of a table: values, intervals and comparisons, beside what was published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.eval import Measure, evaluate, parse_measures
from pyserini_compneg.eval.rows import Row as EvaluatedRow
from pyserini_compneg.eval.rows import make_rows
from pyserini_compneg.eval.runs import Run
from pyserini_compneg.lab.experiments.protocol import RowPlan, SectionPlan
from pyserini_compneg.lab.experiments.results import LOWER_IS_BETTER, SYNONYMS, TERM_MEASURES, Cell, Row, Section
from pyserini_compneg.lab.experiments.term_measures import Neighbours, TermMeasures
from pyserini_compneg.lab.experiments.workplace import Workplace
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics.topics import Topic


class RowRun(NamedTuple):
    """A row that was run.

    Attributes:
        plan: The row.
        name: Its name, with the encoder where there are several.
        path: The run file, relative to the report's folder.
        run: What the file has.
        topics: The queries by their ids, as the row reads their texts.
        compose: Composes a query of terms; None where the method's queries have none.
    """

    plan: RowPlan
    name: str
    path: str
    run: Run
    topics: Mapping[str, Topic]
    compose: Callable[[Topic], ScoringNode] | None = None


class Evaluator:
    """Scores the runs of sections.

    Args:
        names: The measures: those of ``eval -m``, and ``TERM_MEASURES``.
        workplace: Has the judgements, and the documents, which are read for ``TERM_MEASURES``.
        wordnet: The folder of WordNet's files, which are read for synonyms.
        neighbours: Where words have their neighbours; None for the documents in which they occur together.
    """

    def __init__(
        self, names: Sequence[str], workplace: Workplace, wordnet: Path, neighbours: Neighbours | None = None
    ) -> None:
        self._workplace = workplace
        self._judged = parse_measures(name for name in names if name not in TERM_MEASURES)
        by_name = {measure.name: measure for measure in self._judged}
        self._measures = [by_name.get(name) or Measure(name, None) for name in names]
        self._counted = [name for name in names if name in TERM_MEASURES]
        if self._counted:
            texts = {document.docid: document.text or "" for document in workplace.documents()}
            folder = wordnet if SYNONYMS in names else None
            self._terms = TermMeasures(texts, workplace.topics, neighbours, folder)

    def section(self, plan: SectionPlan, topics: Sequence[Topic], ran: Sequence[RowRun]) -> Section:
        """The figures of a section.

        Raises:
            InputError: None of its queries is judged.
        """
        workplace = self._workplace
        qrels = {topic.qid: workplace.qrels[topic.qid] for topic in topics if topic.qid in workplace.qrels}
        if self._counted:
            qrels = {qid: judged for qid, judged in qrels.items() if self._terms.measured(qid)}
        if not qrels:
            rare = " and has words of few documents" if self._counted else ""
            where = f"{workplace.dataset.folder}: no query of {plan.title!r}"
            raise InputError(f"{where} is judged{rare} in split {workplace.split}")
        results = {}
        for row in ran:
            counted = self._terms.values(row.run, list(qrels), self._counted) if self._counted else {}
            values = evaluate(qrels, row.run, self._judged)
            results[row.name] = {qid: values[qid] | counted.get(qid, {}) for qid in qrels}
        compared = make_rows(results, self._measures, qrels=qrels)
        rows = []
        for row_plan in plan.rows:
            if row_plan.method is None:
                rows.append(Row(row_plan.title, row_plan.formula, self._cells(row_plan), None, row_plan.note))
            for row, evaluated in zip(ran, compared, strict=True):
                if row.plan is row_plan:
                    cells = self._cells(row_plan, evaluated)
                    rows.append(Row(row.name, row_plan.formula, cells, row.path, row_plan.note))
        file = workplace.qrels_file(plan.title, qrels)
        return Section(plan.title, len(qrels), tuple(rows), ran[0].name, results, file)

    def _cells(self, plan: RowPlan, evaluated: EvaluatedRow | None = None) -> dict[str, Cell]:
        names = [measure.name for measure in self._measures]
        published = dict(zip(names, plan.published, strict=False))
        if evaluated is None:
            return {name: Cell(published=published.get(name)) for name in names}
        cells = {}
        for name in names:
            figure = evaluated.figures[name]
            better = figure.better_than(name in LOWER_IS_BETTER)
            cells[name] = Cell(figure.value, figure.interval, better, published.get(name))
        return cells
