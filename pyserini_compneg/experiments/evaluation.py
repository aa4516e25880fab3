"""From runs to the figures of a table: values, intervals and comparisons, beside what was published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pyserini_compneg.errors import MeasureError, ProtocolError
from pyserini_compneg.eval import Measure, evaluate, parse_measures, term_frequencies
from pyserini_compneg.eval.neighbours import WordNeighbours
from pyserini_compneg.eval.rows import PerQuery, compare_rows, make_rows
from pyserini_compneg.eval.rows import Row as EvaluatedRow
from pyserini_compneg.eval.runs import Run
from pyserini_compneg.eval.term_frequencies import words_of
from pyserini_compneg.experiments.methods import Method
from pyserini_compneg.experiments.protocol import LOWER_IS_BETTER, TERM_MEASURES, RowPlan, SectionPlan
from pyserini_compneg.experiments.results import Cell, Row, Section
from pyserini_compneg.experiments.workplace import Workplace
from pyserini_compneg.expression import Atom, Difference, Expression
from pyserini_compneg.expression.topics import Topic

_COUNTED_DOCUMENTS = 20


@dataclass(frozen=True, slots=True)
class RowRun:
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


class Evaluator:
    """Scores the runs of sections.

    Args:
        names: The measures: those of ``eval -m``, and ``TERM_MEASURES``.
        workplace: Has the judgements, and the documents.

    Raises:
        MeasureError: An unknown measure.
    """

    def __init__(self, names: Sequence[str], workplace: Workplace) -> None:
        self._workplace = workplace
        self._judged = parse_measures(name for name in names if name not in TERM_MEASURES)
        by_name = {measure.name: measure for measure in self._judged}
        for name in names:
            if name not in by_name and name not in TERM_MEASURES:
                raise MeasureError(f"measure {name!r} is several; name them one by one")
        self._measures = [by_name.get(name) or Measure(name, None) for name in names]
        self._counted = [name for name in names if name in TERM_MEASURES]
        self._terms: TermMeasures | None = None

    def section(self, plan: SectionPlan, topics: Sequence[Topic], ran: Sequence[RowRun]) -> Section:
        """The figures of a section.

        Raises:
            ProtocolError: None of its queries is judged.
        """
        judged = [topic.qid for topic in topics if topic.qid in self._workplace.qrels]
        if self._counted:
            judged = [qid for qid in judged if self._term_measures().measured(qid)]
        qrels = {qid: self._workplace.qrels[qid] for qid in judged}
        if not qrels:
            rare = " and has words of few documents" if self._counted else ""
            where = f"{self._workplace.dataset.folder}: no query of {plan.title!r}"
            raise ProtocolError(f"{where} is judged{rare} in split {self._workplace.split}")
        results = {row.name: self._values(row.run, qrels) for row in ran}
        rows = make_rows(results, self._measures, {})
        compared = {row.run: row for row in compare_rows(rows, results, self._measures, qrels, randomise=False)}
        return Section(
            title=plan.title,
            queries=len(qrels),
            rows=tuple(self._rows(plan, ran, compared)),
            baseline=ran[0].name,
            qrels=self._workplace.qrels_file(plan.title, qrels),
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
            texts = {document.docid: document.text or "" for document in self._workplace.documents()}
            self._terms = TermMeasures(texts, self._workplace.topics)
        return self._terms

    def _rows(self, plan: SectionPlan, ran: Sequence[RowRun], compared: Mapping[str, EvaluatedRow]) -> Iterator[Row]:
        """The rows in the order of the plan, those that are only published included."""
        for row in plan.rows:
            if row.method is None:
                yield Row(row.title, row.formula, self._cells(row), None, row.note)
            for one in ran:
                if one.plan is row:
                    path = one.path.relative_to(self._workplace.folder).as_posix()
                    yield Row(one.name, row.formula, self._cells(row, compared[one.name]), path, row.note)

    def _cells(self, plan: RowPlan, evaluated: EvaluatedRow | None = None) -> dict[str, Cell]:
        cells = {}
        for measure, published in zip_longest(self._measures, plan.published):
            if evaluated is None:
                cells[measure.name] = Cell(published=published)
                continue
            better = tuple(
                one.other
                for one in evaluated.comparisons.get(measure.name, ())
                if (one.is_worse if measure.name in LOWER_IS_BETTER else one.is_better)
            )
            value, interval = evaluated.values[measure.name], evaluated.intervals.get(measure.name)
            cells[measure.name] = Cell(value, interval, better, published)
        return cells


class TermMeasures:
    """How often the first results hold what was asked for, and what was not, as Widdows 2003 measures negation.

    ``positive_terms`` are the words of what is wanted, ``negated_terms`` those of what is not, without words of what is
    wanted, and ``negated_neighbours`` the ten nearest neighbours of the latter among words that are closer to them than
    to what is wanted. Each measure is the share of these words among all words of the first 20 documents. Words of more
    than a tenth of the documents, such as "of", do not count. A query must have words of all three kinds.

    Args:
        texts: The texts of all documents by id.
        topics: The queries.
    """

    def __init__(self, texts: Mapping[str, str], topics: Sequence[Topic]) -> None:
        self._texts = texts
        neighbours = WordNeighbours(texts.values())
        self._words: dict[str, dict[str, list[str]]] = {}
        for topic in topics:
            atoms = list(_signed_atoms(topic.expression))
            wanted, negated = (
                list(dict.fromkeys(word for text, is_wanted in atoms if is_wanted == side for word in words_of(text)))
                for side in (True, False)
            )
            negated = [word for word in negated if word not in wanted and not neighbours.is_common(word)]
            wanted = [word for word in wanted if not neighbours.is_common(word)]
            words = {
                "positive_terms": wanted,
                "negated_terms": negated,
                "negated_neighbours": neighbours.of(negated, wanted) if negated else [],
            }
            if all(words.values()):
                self._words[topic.qid] = words

    def measured(self, qid: str) -> bool:
        """Whether a query has words of all kinds."""
        return qid in self._words

    def values(self, run: Run, qids: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
        """The values of some of the measures for some queries that are measured; 0 where a query has no results."""
        return {qid: {name: self._value(run.get(qid, {}), self._words[qid][name]) for name in measures} for qid in qids}

    def _value(self, ranking: Mapping[str, float], words: Sequence[str]) -> float:
        first = sorted(ranking, key=lambda docid: -ranking[docid])[:_COUNTED_DOCUMENTS]
        return term_frequencies([self._texts.get(docid, "") for docid in first], words).words


def _signed_atoms(expression: Expression | None, is_wanted: bool = True) -> Iterator[tuple[str, bool]]:
    """The texts of the atoms, each with whether it is wanted."""
    match expression:
        case None:
            return
        case Atom(text):
            yield text, is_wanted
        case Difference(left, right):
            yield from _signed_atoms(left, is_wanted)
            yield from _signed_atoms(right, not is_wanted)
        case _:
            for operand in expression.operands:
                yield from _signed_atoms(operand, is_wanted)
