"""Results as rows: the means of one run over one class of queries, compared with those of the other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyserini_compneg.eval.measures import Measure, mean, observations
from pyserini_compneg.eval.significance import Comparison, Interval, compare, confidence_interval

PerQuery = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one run over one class of queries.

    Attributes:
        group: The class, or ``all``.
        qids: Its queries.
        run: The run's label.
        values: ``{measure name: mean}``.
        intervals: ``{measure name: 95 % confidence interval of the mean}``, for measures with two observations or more.
        comparisons: ``{measure name: this run compared with each other run}``, for the same measures.
    """

    group: str
    qids: Sequence[str]
    run: str
    values: dict[str, float]
    intervals: dict[str, Interval] = field(default_factory=dict)
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)


def make_rows(results: Mapping[str, PerQuery], measures: Sequence[Measure], groups: Mapping[str, str]) -> list[Row]:
    """The rows of a table: one for each class and run, the classes in the order of their first queries, ``all`` last.

    Args:
        results: ``{run label: what evaluate() returned}``, all for the same queries, at least one.
        measures: The measures of the results.
        groups: ``{qid: class}``; if it is empty, there is only ``all``.
    """
    qids = list(next(iter(results.values())))
    members: dict[str, list[str]] = {}
    for qid in qids if groups else []:
        members.setdefault(groups[qid], []).append(qid)
    return [
        Row(group, chosen, run, {measure.name: mean(per_query, measure, chosen) for measure in measures})
        for group, chosen in [*members.items(), ("all", qids)]
        for run, per_query in results.items()
    ]


def compare_rows(
    rows: Sequence[Row],
    results: Mapping[str, PerQuery],
    measures: Sequence[Measure],
    qrels: Mapping[str, Mapping[str, int]],
    randomise: bool = True,
) -> list[Row]:
    """Adds to the rows confidence intervals and comparisons of each run with each other, by class and measure.

    P-values are corrected for the number of pairs of runs, for one measure in one class. A measure with a single
    observation in a class is not compared there.

    Args:
        rows: What :func:`make_rows` returned.
        results: What the rows were made from.
        measures: The measures of the results.
        qrels: The judgements; they say which observations are independent.
        randomise: Whether to run the randomisation test.
    """
    compared = []
    for start in range(0, len(rows), len(results)):
        side_by_side = rows[start : start + len(results)]
        qids = side_by_side[0].qids
        observed = {measure.name: observations(measure, qrels, qids) for measure in measures if len(qids) > 1}
        values = {
            name: {run: [per_query[qid][name] for qid in chosen] for run, per_query in results.items()}
            for name, chosen in observed.items()
            if len(chosen) > 1
        }
        comparisons = {name: compare(by_run, randomise) for name, by_run in values.items()}
        compared += [
            replace(
                row,
                intervals={name: confidence_interval(by_run[row.run]) for name, by_run in values.items()},
                comparisons={name: [one for one in ones if one.run == row.run] for name, ones in comparisons.items()},
            )
            for row in side_by_side
        ]
    return compared
