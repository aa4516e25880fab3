"""What single queries show: curves over their similarity or over a setting, and the best and the worst examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pyserini_compneg.compose import query_terms
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval.significance import confidence_interval
from pyserini_compneg.expression import Difference, Expression, format_expression, verbalise
from pyserini_compneg.reproduce.evaluation import RowRun
from pyserini_compneg.reproduce.experiment import SectionRun
from pyserini_compneg.reproduce.methods import ComposingMethod
from pyserini_compneg.reproduce.protocol import Interference
from pyserini_compneg.reproduce.results import Curve, Example, Point, Weight

_SHOWN_TERMS = 12
_TOP = 10

Similarities = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""The similarity of the two texts of each pair."""


def interference_curve(
    plan: Interference, sections: Sequence[SectionRun], measure: str, similarities: Similarities
) -> Curve:
    r"""Performance at different levels of interference between A and B in A \ B, as in Figure 3.

    The queries are sorted by similarity and cut into bins of as many queries each, the first ones larger by one where
    it does not come out even.

    Args:
        plan: Section, bins and rows.
        sections: What was run.
        measure: The measure's name.
        similarities: Compares the texts of A and B.

    Raises:
        ProtocolError: As :func:`check_interference`.
    """
    section = next(one for one in sections if one.plan.title == plan.section)
    sides = {topic.qid: _sides(topic.qid, topic.expression) for topic in section.topics}
    found = dict(zip(sides, similarities(list(sides.values())), strict=True))
    qids = sorted((qid for qid in sides if _is_judged(section, qid)), key=found.__getitem__)
    _check_bins(plan, len(qids))
    shares = _cut(qids, plan.bins)
    names = plan.rows or [row.plan.title for row in section.rows]
    series = {
        row.name: tuple(_point(share, section.section.per_query[row.name], measure, found) for share in shares)
        for row in section.rows
        if row.plan.title in names
    }
    return Curve(f"{measure} by interference", "similarity of the positive and the negative text", measure, series)


def check_interference(plan: Interference, topics: Sequence[Topic], judged: Collection[str]) -> None:
    """Makes sure that there will be a curve, before anything is run.

    Args:
        plan: Section and bins.
        topics: The section's queries.
        judged: The ids of the queries with judgements.

    Raises:
        ProtocolError: A query that is no difference, or fewer judged queries than two a bin.
    """
    for topic in topics:
        _sides(topic.qid, topic.expression)
    _check_bins(plan, sum(topic.qid in judged for topic in topics))


def _check_bins(plan: Interference, queries: int) -> None:
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


def _sides(qid: str, expression: Expression | None) -> tuple[str, str]:
    if not isinstance(expression, Difference):
        raise ProtocolError(f"query {qid!r} is no difference, so nothing in it can interfere")
    return verbalise(expression.left), verbalise(expression.right)


def _is_judged(section: SectionRun, qid: str) -> bool:
    return all(qid in values for values in section.section.per_query.values())


def _cut(qids: Sequence[str], bins: int) -> list[Sequence[str]]:
    size, larger = divmod(len(qids), bins)
    starts = [number * size + min(number, larger) for number in range(bins + 1)]
    return [qids[start:end] for start, end in zip(starts, starts[1:], strict=False)]


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
    """For each method but the baseline, the queries on which it gains and loses most.

    Args:
        section: What was run.
        measure: The measure that decides.
        count: How many of the best, and of the worst, at most; queries without a difference are none.
        qrels: The judgements.
        title: A document's title by its id.
    """
    baseline, *others = section.rows
    topics = {topic.qid: topic for topic in section.topics}
    for row in others:
        changes = _changes(section, row, baseline, measure)
        best = [qid for qid, change in changes[::-1][:count] if change > 0]
        worst = [qid for qid, change in changes[:count] if change < 0]
        for qid in best + worst:
            yield _example(section, row, baseline, topics[qid], measure, qrels[qid], title)


def _changes(section: SectionRun, row: RowRun, baseline: RowRun, measure: str) -> list[tuple[str, float]]:
    values, others = section.section.per_query[row.name], section.section.per_query[baseline.name]
    changes = [(qid, values[qid][measure] - others[qid][measure]) for qid in values]
    return sorted(changes, key=lambda change: (change[1], change[0]))


def _example(
    section: SectionRun,
    row: RowRun,
    baseline: RowRun,
    topic: Topic,
    measure: str,
    judged: Mapping[str, int],
    title: Callable[[str], str],
) -> Example:
    relevant = {docid for docid, value in judged.items() if value > 0}
    first, other = (_top(one, topic.qid) for one in (row, baseline))
    read = row.topics[topic.qid]
    positive, negative = _terms(row, read)
    values = section.section.per_query
    return Example(
        section=section.plan.title,
        method=row.name,
        baseline=baseline.name,
        qid=topic.qid,
        text=topic.text,
        expression=format_expression(read.expression) if read.expression is not None else "",
        measure=measure,
        value=values[row.name][topic.qid][measure],
        baseline_value=values[baseline.name][topic.qid][measure],
        positive=positive,
        negative=negative,
        gained=tuple(title(docid) for docid in first if docid in relevant and docid not in other),
        lost=tuple(title(docid) for docid in other if docid in relevant and docid not in first),
    )


def _top(row: RowRun, qid: str) -> Sequence[str]:
    """The first documents, in the order of the run's scores, which fall strictly."""
    ranking = row.run.get(qid, {})
    return sorted(ranking, key=lambda docid: -ranking[docid])[:_TOP]


def _terms(row: RowRun, topic: Topic) -> tuple[tuple[Weight, ...], tuple[Weight, ...]]:
    """The heaviest terms that raise and that lower a score; none where the method's queries have no terms."""
    if not isinstance(row.method, ComposingMethod):
        return (), ()
    weights = query_terms(row.method.compose(topic))
    positive = [weight for weight in weights if weight[1] > 0][:_SHOWN_TERMS]
    negative = [weight for weight in weights if weight[1] < 0]
    return tuple(positive), tuple(sorted(negative, key=lambda weight: weight[1])[:_SHOWN_TERMS])
