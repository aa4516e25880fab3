"""Curves of a measure by similarity or by a setting, and the queries with the largest differences as examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from pyserini_compneg.compose import query_terms
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval.significance import confidence_interval
from pyserini_compneg.experiments.evaluation import RowRun
from pyserini_compneg.experiments.experiment import SectionRun
from pyserini_compneg.experiments.methods import ComposingMethod
from pyserini_compneg.experiments.protocol import Interference
from pyserini_compneg.experiments.results import Curve, Example, Point, Weight
from pyserini_compneg.expression import Difference, format_expression, verbalise
from pyserini_compneg.expression.topics import Topic

_SHOWN_TERMS = 12
_TOP = 10

Similarities = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""The similarity of the two texts of each pair."""


def interference_curve(plan: Interference, section: SectionRun, measure: str, similarities: Similarities) -> Curve:
    r"""Performance at different levels of interference between A and B in A \ B, as in Figure 3.

    The queries are sorted by similarity and cut into bins of equal size; where that is not possible, the first bins
    have one query more.

    Args:
        plan: The section and the bins.
        section: The section that the plan names.
        measure: The measure's name.
        similarities: Compares the texts of A and B.

    Raises:
        ProtocolError: As :func:`check_interference`.
    """
    per_query = section.section.per_query
    sides = {topic.qid: _sides(topic) for topic in section.topics}
    similarity = dict(zip(sides, similarities(list(sides.values())), strict=True))
    judged = [qid for qid in sides if all(qid in values for values in per_query.values())]
    check_interference(plan, section.topics, judged)
    bins = [list(qids) for qids in np.array_split(sorted(judged, key=similarity.__getitem__), plan.bins)]
    series = {
        row.name: tuple(_point(qids, per_query[row.name], measure, similarity) for qids in bins) for row in section.rows
    }
    return Curve(f"{measure} by interference", "similarity of the positive and the negative text", measure, series)


def check_interference(plan: Interference, topics: Sequence[Topic], judged: Collection[str]) -> None:
    """Makes sure that there will be a curve, before anything is run.

    Args:
        plan: Section and bins.
        topics: The section's queries.
        judged: The ids of the queries with judgements.

    Raises:
        ProtocolError: A query that is no difference, or fewer than two judged queries for each bin.
    """
    for topic in topics:
        _sides(topic)
    queries = sum(topic.qid in judged for topic in topics)
    if queries < 2 * plan.bins:
        raise ProtocolError(f"{plan.section}: {queries} judged queries are too few for {plan.bins} bins")


def sweep_curve(section: SectionRun, measure: str) -> Curve:
    """A measure against the setting that rows of a section vary; rows without it become level lines."""
    per_query = section.section.per_query
    qids = list(next(iter(per_query.values())))
    xs = sorted({row.plan.sweep.values[0] for row in section.rows if row.plan.sweep})
    series: dict[str, list[Point]] = {}
    for row in section.rows:
        encoder = row.name.removeprefix(row.plan.title)
        for x in row.plan.sweep.values if row.plan.sweep else dict.fromkeys((xs[0], xs[-1])):
            point = _point(qids, per_query[row.name], measure, dict.fromkeys(qids, float(x)))
            series.setdefault(f"{row.plan.name}{encoder}", []).append(point)
    title = f"{section.plan.title}: {measure}"
    return Curve(title, section.plan.sweep_symbol, measure, {name: tuple(points) for name, points in series.items()})


def _sides(topic: Topic) -> tuple[str, str]:
    """The text of what a difference wants, and of what it excludes."""
    if not isinstance(topic.expression, Difference):
        raise ProtocolError(f"query {topic.qid!r} is no difference, so it has no interference")
    return verbalise(topic.expression.left), verbalise(topic.expression.right)


def _point(
    qids: Sequence[str], values: Mapping[str, Mapping[str, float]], measure: str, x: Mapping[str, float]
) -> Point:
    chosen = [values[qid][measure] for qid in qids]
    mean = sum(chosen) / len(chosen)
    low, high = confidence_interval(chosen) if len(chosen) > 1 else (mean, mean)
    return Point(sum(x[qid] for qid in qids) / len(qids), mean, low, high, len(qids))


def examples(
    section: SectionRun,
    measure: str,
    count: int,
    qrels: Mapping[str, Mapping[str, int]],
    title: Callable[[str], str],
) -> Iterator[Example]:
    """For each method but the baseline, the queries of its largest positive and negative differences from the baseline.

    Args:
        section: What was run.
        measure: The measure that decides.
        count: How many of each sign, at most; a query without a difference is no example.
        qrels: The judgements.
        title: Gives a document's title by its id.
    """
    baseline, *others = section.rows
    topics = {topic.qid: topic for topic in section.topics}
    base = section.section.per_query[baseline.name]
    for row in others:
        values = section.section.per_query[row.name]
        changes = sorted((values[qid][measure] - base[qid][measure], qid) for qid in values)
        largest = [qid for change, qid in changes[::-1][:count] if change > 0]
        smallest = [qid for change, qid in changes[:count] if change < 0]
        for qid in largest + smallest:
            read = row.topics[qid]
            ours, theirs = (_relevant_at_top(one, qid, qrels[qid]) for one in (row, baseline))
            positive, negative = _terms(row, read)
            yield Example(
                section=section.plan.title,
                method=row.name,
                baseline=baseline.name,
                qid=qid,
                text=topics[qid].text,
                expression=format_expression(read.expression) if read.expression is not None else "",
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
    if not isinstance(row.method, ComposingMethod):
        return (), ()
    weights = query_terms(row.method.compose(topic))
    positive = [weight for weight in weights if weight[1] > 0]
    negative = sorted((weight for weight in weights if weight[1] < 0), key=lambda weight: weight[1])
    return tuple(positive[:_SHOWN_TERMS]), tuple(negative[:_SHOWN_TERMS])
