"""Turns runs into the figures of a section: values, intervals and comparisons, curves, and example queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from pyserini_compneg.compose import ScoringNode, query_terms
from pyserini_compneg.eval import Measure, confidence_interval, evaluate, make_rows, parse_measures
from pyserini_compneg.expression import Difference, format_expression, verbalise
from pyserini_compneg.lab.experiments.inputs import TERM_MEASURES
from pyserini_compneg.lab.experiments.protocol import Interference
from pyserini_compneg.lab.experiments.results import Curve, Example, Point, RowRun, Section, Terms
from pyserini_compneg.lab.experiments.run_folder import RunFolder
from pyserini_compneg.lab.experiments.term_measures import TermMeasures
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics import Topic

_SHOWN_TERMS = 12
_TOP = 10

Similarities = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""Gives the similarity of the two texts of each pair."""


def score(section: Section, names: Sequence[str], run_folder: RunFolder, terms: TermMeasures | None) -> None:
    """Adds the figures to the rows of a section. ``terms`` computes ``TERM_MEASURES``; None if no name is one."""
    counted = [name for name in names if name in TERM_MEASURES]
    judged = parse_measures(name for name in names if name not in TERM_MEASURES)
    by_name = {measure.name: measure for measure in judged}
    measures = [by_name.get(name) or Measure(name, None) for name in names]
    qids = [topic.qid for topic in section.topics if terms is None or terms.measured(topic.qid)]
    qrels = {qid: run_folder.qrels[qid] for qid in qids if qid in run_folder.qrels}
    if not qrels:
        rare = " and has words of few documents" if terms else ""
        said = f"no query of {section.plan.title!r} is judged{rare} in split {run_folder.split}"
        raise InputError(said, where=run_folder.dataset.folder)
    results = {}
    for row in section.ran:
        values = evaluate(qrels, row.run, judged) if judged else {}
        shares = terms.values(row.run, list(qrels), counted) if terms else {}
        results[row.name] = {qid: values.get(qid, {}) | shares.get(qid, {}) for qid in qrels}
    for row, evaluated in zip(section.ran, make_rows(results, measures, qrels=qrels), strict=True):
        row.figures, row.per_query = evaluated.figures, evaluated.per_query
    section.queries = len(qrels)
    section.qrels = run_folder.qrels_file(section.plan.title, qrels)


def interference_curve(section: Section, bins: int, measure: str, similarities: Similarities) -> Curve:
    r"""Performance at different levels of interference between A and B in A \ B, as in Figure 3.

    The queries are sorted by the similarity of the texts of A and B, and divided into bins of equal size. If the number
    is not divisible, the first bins have one query more.
    """
    sides = {topic.qid: _sides(topic) for topic in section.topics}
    similarity = dict(zip(sides, similarities(list(sides.values())), strict=True))
    judged = [qid for qid in sides if all(qid in row.per_query for row in section.ran)]
    parts = [list(qids) for qids in np.array_split(sorted(judged, key=similarity.__getitem__), bins)]
    series = {}
    for row in section.ran:
        values = {qid: row.per_query[qid][measure] for qid in judged}
        points = (_point([values[qid] for qid in part], [similarity[qid] for qid in part]) for part in parts)
        series[row.name] = tuple(points)
    return Curve(f"{measure} by interference", "similarity of the positive and the negative text", measure, series)


def check_interference(plan: Interference, topics: Sequence[Topic], judged: Collection[str]) -> None:
    """Refuses, before any search, queries that are not differences, and bins with fewer than two judged queries."""
    for topic in topics:
        _sides(topic)
    queries = sum(topic.qid in judged for topic in topics)
    if queries < 2 * plan.bins:
        raise InputError(f"{queries} judged queries are too few for {plan.bins} bins", where=plan.section)


def sweep_curve(section: Section, measure: str) -> Curve:
    """A measure against the setting that the rows of a section vary. Rows without the setting become level lines."""
    ran = [row for row in section.ran if not row.plan.tuned]
    xs = sorted({row.plan.sweep.values[0] for row in ran if row.plan.sweep})
    series: dict[str, list[Point]] = {}
    for row in ran:
        values = [one[measure] for one in row.per_query.values()]
        name = f"{row.plan.name}{row.name.removeprefix(row.plan.title)}"  # row.name may end with an encoder
        for x in row.plan.sweep.values if row.plan.sweep else xs:
            series.setdefault(name, []).append(_point(values, [float(x)]))
    points = {name: tuple(points) for name, points in series.items()}
    return Curve(f"{section.plan.title}: {measure}", section.plan.sweep_symbol, measure, points)


def _sides(topic: Topic) -> tuple[str, str]:
    """The texts of the wanted part and of the excluded part of a difference."""
    if not isinstance(topic.expression, Difference):
        raise InputError(f"query {topic.qid!r} is not a difference, so it has no interference")
    return verbalise(topic.expression.left), verbalise(topic.expression.right)


def _point(values: Sequence[float], xs: Sequence[float]) -> Point:
    mean = sum(values) / len(values)
    low, high = confidence_interval(values) if len(values) > 1 else (mean, mean)
    return Point(sum(xs) / len(xs), mean, low, high, len(values))


def examples(section: Section, measure: str, count: int, run_folder: RunFolder) -> Iterator[Example]:
    """For each method except the baseline, the queries with the largest gains and losses against the baseline.

    There are at most ``count`` gains and ``count`` losses.
    """
    baseline, *others = section.ran
    base = baseline.per_query
    for row in others:
        values = row.per_query
        changes = sorted((values[qid][measure] - base[qid][measure], qid) for qid in values)
        largest = [qid for change, qid in changes[::-1][:count] if change > 0]
        smallest = [qid for change, qid in changes[:count] if change < 0]
        for qid in largest + smallest:
            topic = row.topics[qid]
            ours, theirs = (_relevant_at_top(one, qid, run_folder.qrels[qid]) for one in (row, baseline))
            terms = heaviest_terms(row.compose(topic)) if row.compose else Terms((), ())
            yield Example(
                section=section.plan.title,
                method=row.name,
                baseline=baseline.name,
                qid=qid,
                text=topic.text,
                expression=format_expression(topic.expression) if topic.expression is not None else "",
                measure=measure,
                value=values[qid][measure],
                baseline_value=base[qid][measure],
                positive=terms.positive,
                negative=terms.negative,
                gained=[run_folder.title(docid) for docid in ours if docid not in theirs],
                lost=[run_folder.title(docid) for docid in theirs if docid not in ours],
            )


def heaviest_terms(node: ScoringNode) -> Terms:
    """The heaviest terms of a composed query that raise a score, and those that lower it."""
    weights = query_terms(node)  # the largest magnitude first
    positive = [(term, weight) for term, weight in weights if weight > 0]
    negative = [(term, weight) for term, weight in weights if weight < 0]
    return Terms(positive[:_SHOWN_TERMS], negative[:_SHOWN_TERMS])


def _relevant_at_top(row: RowRun, qid: str, judged: Mapping[str, int]) -> list[str]:
    """The relevant documents among the top 10, in the order of the run's scores, which strictly decrease."""
    ranking = row.run.get(qid, {})
    return [docid for docid in sorted(ranking, key=lambda docid: -ranking[docid])[:_TOP] if judged.get(docid, 0) > 0]
