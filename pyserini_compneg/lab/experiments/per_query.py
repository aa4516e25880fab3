"""Curves of a measure by similarity or by a setting, and the queries with the largest differences as examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from pyserini_compneg.compose import query_terms
from pyserini_compneg.eval.significance import confidence_interval
from pyserini_compneg.expression import Difference, format_expression, verbalise
from pyserini_compneg.lab.experiments.evaluation import RowRun
from pyserini_compneg.lab.experiments.protocol import Interference
from pyserini_compneg.lab.experiments.results import Curve, Example, Point, Section, Weight
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics.topics import Topic

_SHOWN_TERMS = 12
_TOP = 10

Similarities = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""The similarity of the two texts of each pair."""


def interference_curve(
    plan: Interference, topics: Sequence[Topic], section: Section, measure: str, similarities: Similarities
) -> Curve:
    r"""Performance at different levels of interference between A and B in A \ B, as in Figure 3.

    The queries are sorted by similarity and cut into bins of equal size; where that is not possible, the first bins
    have one query more.

    Args:
        plan: The section and the bins.
        topics: The section's queries, for which :func:`check_interference` found nothing wrong.
        section: The figures of the section that the plan names.
        measure: The measure's name.
        similarities: Compares the texts of A and B.
    """
    sides = {topic.qid: _sides(topic) for topic in topics}
    similarity = dict(zip(sides, similarities(list(sides.values())), strict=True))
    judged = [qid for qid in sides if all(qid in values for values in section.per_query.values())]
    bins = [list(qids) for qids in np.array_split(sorted(judged, key=similarity.__getitem__), plan.bins)]
    series = {
        name: tuple(_point([values[qid][measure] for qid in qids], [similarity[qid] for qid in qids]) for qids in bins)
        for name, values in section.per_query.items()
    }
    return Curve(f"{measure} by interference", "similarity of the positive and the negative text", measure, series)


def check_interference(plan: Interference, topics: Sequence[Topic], judged: Collection[str]) -> None:
    """Makes sure that there will be a curve, before anything is run.

    Args:
        plan: Section and bins.
        topics: The section's queries.
        judged: The ids of the queries with judgements.

    Raises:
        InputError: A query that is no difference, or fewer than two judged queries for each bin.
    """
    for topic in topics:
        _sides(topic)
    queries = sum(topic.qid in judged for topic in topics)
    if queries < 2 * plan.bins:
        raise InputError(f"{plan.section}: {queries} judged queries are too few for {plan.bins} bins")


def sweep_curve(ran: Sequence[RowRun], section: Section, symbol: str, measure: str) -> Curve:
    """A measure against the setting that rows of a section vary; rows without it become level lines."""
    ran = [row for row in ran if not row.plan.tuned]
    xs = sorted({row.plan.sweep.values[0] for row in ran if row.plan.sweep})
    series: dict[str, list[Point]] = {}
    for row in ran:
        values = [one[measure] for one in section.per_query[row.name].values()]
        name = f"{row.plan.name}{row.name.removeprefix(row.plan.title)}"  # with the encoder where there are several
        for x in row.plan.sweep.values if row.plan.sweep else xs:
            series.setdefault(name, []).append(_point(values, [float(x)]))
    title = f"{section.title}: {measure}"
    return Curve(title, symbol, measure, {name: tuple(points) for name, points in series.items()})


def _sides(topic: Topic) -> tuple[str, str]:
    """The text of what a difference wants, and of what it excludes."""
    if not isinstance(topic.expression, Difference):
        raise InputError(f"query {topic.qid!r} is no difference, so it has no interference")
    return verbalise(topic.expression.left), verbalise(topic.expression.right)


def _point(values: Sequence[float], xs: Sequence[float]) -> Point:
    mean = sum(values) / len(values)
    low, high = confidence_interval(values) if len(values) > 1 else (mean, mean)
    return Point(sum(xs) / len(xs), mean, low, high, len(values))


def examples(
    ran: Sequence[RowRun],
    section: Section,
    measure: str,
    count: int,
    qrels: Mapping[str, Mapping[str, int]],
    title: Callable[[str], str],
) -> Iterator[Example]:
    """For each method but the baseline, the queries of its largest positive and negative differences from the baseline.

    Args:
        ran: The rows that were run.
        section: Their figures.
        measure: The measure that decides.
        count: How many of each sign, at most; a query without a difference is no example.
        qrels: The judgements.
        title: Gives a document's title by its id.
    """
    baseline, *others = ran
    base = section.per_query[baseline.name]
    for row in others:
        values = section.per_query[row.name]
        changes = sorted((values[qid][measure] - base[qid][measure], qid) for qid in values)
        largest = [qid for change, qid in changes[::-1][:count] if change > 0]
        smallest = [qid for change, qid in changes[:count] if change < 0]
        for qid in largest + smallest:
            topic = row.topics[qid]
            ours, theirs = (_relevant_at_top(one, qid, qrels[qid]) for one in (row, baseline))
            positive, negative = _terms(row, topic)
            yield Example(
                section=section.title,
                method=row.name,
                baseline=baseline.name,
                qid=qid,
                text=topic.text,
                expression=format_expression(topic.expression) if topic.expression is not None else "",
                measure=measure,
                value=values[qid][measure],
                baseline_value=base[qid][measure],
                positive=positive,
                negative=negative,
                gained=tuple(title(docid) for docid in ours if docid not in theirs),
                lost=tuple(title(docid) for docid in theirs if docid not in ours),
            )


def _relevant_at_top(row: RowRun, qid: str, judged: Mapping[str, int]) -> list[str]:
    """The relevant documents among the top 10, in the order of the run's scores, which fall strictly."""
    ranking = row.run.get(qid, {})
    return [docid for docid in sorted(ranking, key=lambda docid: -ranking[docid])[:_TOP] if judged.get(docid, 0) > 0]


def _terms(row: RowRun, topic: Topic) -> tuple[tuple[Weight, ...], tuple[Weight, ...]]:
    """The heaviest terms that raise and that lower a score; none where the method's queries have no terms."""
    weights = query_terms(row.compose(topic)) if row.compose else []
    positive = [weight for weight in weights if weight[1] > 0]
    negative = sorted((weight for weight in weights if weight[1] < 0), key=lambda weight: weight[1])
    return tuple(positive[:_SHOWN_TERMS]), tuple(negative[:_SHOWN_TERMS])
