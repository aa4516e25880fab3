"""Results as rows: the means of a run over a class of queries, and how it compares with the other runs."""

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
        intervals: ``{measure name: 95 % confidence interval of the mean}``, of measures with two observations or more.
        comparisons: ``{measure name: this run compared with each other run}``, of the same measures.
    """

    group: str
    qids: Sequence[str]
    run: str
    values: dict[str, float]
    intervals: dict[str, Interval] = field(default_factory=dict)
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)


def make_rows(results: Mapping[str, PerQuery], measures: Sequence[Measure], groups: Mapping[str, str]) -> list[Row]:
    """The rows of a table: for each class in order of its first query, and for ``all``, one for each run.

    Args:
        results: ``{run label: what evaluate() returned}``, all for the same queries, at least one.
        measures: The measures of the results.
        groups: ``{qid: class}``; without any, there is only ``all``.
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
    """The rows with confidence intervals, and compared: each run with each other, in every class and measure.

    The correction of p-values is over the pairs of runs, for one measure in one class. Measures with a single
    observation in a class are left as they are.

    Args:
        rows: What :func:`make_rows` returned.
        results: What they were made from.
        measures: The same.
        qrels: The judgements that the results are for, which say what observations are independent.
        randomise: Whether to run the randomisation test.
    """
    compared = []
    for start in range(0, len(rows), len(results)):
        side_by_side = rows[start : start + len(results)]
        intervals: dict[str, dict[str, Interval]] = {run: {} for run in results}
        comparisons: dict[str, dict[str, list[Comparison]]] = {run: {} for run in results}
        for measure in measures if len(side_by_side[0].qids) > 1 else []:
            qids = observations(measure, qrels, side_by_side[0].qids)
            if len(qids) < 2:
                continue
            values = {run: [per_query[qid][measure.name] for qid in qids] for run, per_query in results.items()}
            found = compare(values, randomise)
            for run in results:
                intervals[run][measure.name] = confidence_interval(values[run])
                comparisons[run][measure.name] = [one for one in found if one.run == run]
        compared += [
            replace(row, intervals=intervals[row.run], comparisons=comparisons[row.run]) for row in side_by_side
        ]
    return compared
