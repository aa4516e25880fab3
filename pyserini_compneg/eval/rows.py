"""Results as rows: the figures of one run over one class of queries, and comparisons with the other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pyserini_compneg.eval.measures import Measure, mean, observations
from pyserini_compneg.eval.significance import Interval, PairedDifference, compare, confidence_interval

PerQuery = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of one run over one class of queries.

    Attributes:
        value: The mean over the queries.
        interval: The 95 % confidence interval of the mean; None if runs are not compared, or if there are fewer than
            two independent observations.
        against: ``{label of another run: the paired comparison with it}``; empty if there is no interval.
    """

    value: float
    interval: Interval | None = None
    against: Mapping[str, PairedDifference] = field(default_factory=dict)

    def better_than(self, lower_is_better: bool = False) -> tuple[str, ...]:
        """The labels of the runs that this run is significantly better than, by the corrected t-test."""
        sign = -1 if lower_is_better else 1
        return tuple(run for run, one in self.against.items() if one.is_significant and sign * one.difference > 0)


@dataclass(frozen=True, slots=True)
class Row:
    """One run over one class of queries.

    Attributes:
        run: The run's label.
        group: The class, or ``all``.
        per_query: ``{qid: {measure name: value}}``, what ``evaluate`` returned for the queries of the class.
        figures: ``{measure name: the figure}``.
    """

    run: str
    group: str
    per_query: PerQuery
    figures: Mapping[str, Figure]


def make_rows(
    results: Mapping[str, PerQuery],
    measures: Sequence[Measure],
    groups: Mapping[str, str] = MappingProxyType({}),
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    randomise: bool = False,
) -> list[Row]:
    """The rows of a table: one for each class and run, the classes in the order of their first queries, ``all`` last.

    Args:
        results: ``{run label: what evaluate() returned}``, all for the same queries, at least one.
        measures: The measures of the results.
        groups: ``{qid: class}``; if it is empty, there is only ``all``.
        qrels: The judgements, which say which observations are independent. With them, figures get confidence
            intervals, and each run is compared with each other run. P-values are corrected for the number of pairs of
            runs, for one measure in one class.
        randomise: Whether comparisons include the randomisation test.
    """
    qids = list(next(iter(results.values())))
    members: dict[str, list[str]] = {}
    for qid in qids if groups else []:
        members.setdefault(groups[qid], []).append(qid)
    rows = []
    for group, chosen in [*members.items(), ("all", qids)]:
        per_query = {run: {qid: values[qid] for qid in chosen} for run, values in results.items()}
        figures = {measure.name: _figures(per_query, measure, qrels, randomise) for measure in measures}
        rows += [
            Row(run, group, values, {name: by_run[run] for name, by_run in figures.items()})
            for run, values in per_query.items()
        ]
    return rows


def _figures(
    results: Mapping[str, PerQuery],
    measure: Measure,
    qrels: Mapping[str, Mapping[str, int]] | None,
    randomise: bool,
) -> dict[str, Figure]:
    qids = list(next(iter(results.values())))
    means = {run: mean(per_query, measure, qids) for run, per_query in results.items()}
    observed = [] if qrels is None or len(qids) < 2 else observations(measure, qrels, qids)
    if len(observed) < 2:
        return {run: Figure(value) for run, value in means.items()}
    values = {run: [per_query[qid][measure.name] for qid in observed] for run, per_query in results.items()}
    against = compare(values, randomise)
    return {run: Figure(value, confidence_interval(values[run]), against[run]) for run, value in means.items()}
