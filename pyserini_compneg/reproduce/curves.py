"""Curves: a measure against the similarity of what is wanted and what is not, and against a setting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval.significance import confidence_interval
from pyserini_compneg.expression import Difference, Expression, verbalise
from pyserini_compneg.reproduce.experiment import RanSection
from pyserini_compneg.reproduce.protocol import Interference
from pyserini_compneg.reproduce.results import Curve, Point

Similarities = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""The similarity of the two texts of each pair."""


def interference_curve(
    plan: Interference, sections: Sequence[RanSection], measure: str, similarities: Similarities
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
    names = plan.rows or [row.plan.name for row in section.rows]
    series = {
        row.name: tuple(_point(share, section.section.per_query[row.name], measure, found) for share in shares)
        for row in section.rows
        if row.plan.name in names
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


def sweep_curve(section: RanSection, measure: str) -> Curve:
    """A measure against the setting that rows of a section vary; rows without it become level lines."""
    per_query = section.section.per_query
    qids = list(next(iter(per_query.values())))
    xs = sorted({row.plan.swept[1] for row in section.rows if row.plan.swept is not None})
    ends = dict.fromkeys((xs[0], xs[-1]))
    series: dict[str, list[Point]] = {}
    for row in section.rows:
        label = row.name.removeprefix(row.plan.name)
        places = [row.plan.swept] if row.plan.swept is not None else [(row.plan.name, x) for x in ends]
        for name, x in places:
            series.setdefault(f"{name}{label}", []).append(
                _point(qids, per_query[row.name], measure, dict.fromkeys(qids, x))
            )
    title = f"{section.plan.title}: {measure}"
    return Curve(title, section.plan.sweep, measure, {name: tuple(points) for name, points in series.items()})


def _sides(qid: str, expression: Expression | None) -> tuple[str, str]:
    if not isinstance(expression, Difference):
        raise ProtocolError(f"query {qid!r} is no difference, so nothing in it can interfere")
    return verbalise(expression.left), verbalise(expression.right)


def _is_judged(section: RanSection, qid: str) -> bool:
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
