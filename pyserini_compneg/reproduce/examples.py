"""The best and the worst queries of every method, with the terms that made the difference, as in Table 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyserini_compneg.compose import query_terms
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import format_expression
from pyserini_compneg.reproduce.experiment import RanSection
from pyserini_compneg.reproduce.methods.method import ComposingMethod
from pyserini_compneg.reproduce.results import Example, Weight
from pyserini_compneg.reproduce.scoring import RanRow

_TERMS = 12
_FIRST = 10


def examples(
    section: RanSection,
    measure: str,
    count: int,
    qrels: Mapping[str, Mapping[str, int]],
    title: Callable[[str], str],
) -> Iterator[Example]:
    """For each method but the baseline, the queries that it gains and that it loses most on.

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


def _changes(section: RanSection, row: RanRow, baseline: RanRow, measure: str) -> list[tuple[str, float]]:
    values, others = section.section.per_query[row.name], section.section.per_query[baseline.name]
    changes = [(qid, values[qid][measure] - others[qid][measure]) for qid in values]
    return sorted(changes, key=lambda change: (change[1], change[0]))


def _example(
    section: RanSection,
    row: RanRow,
    baseline: RanRow,
    topic: Topic,
    measure: str,
    judged: Mapping[str, int],
    title: Callable[[str], str],
) -> Example:
    relevant = {docid for docid, value in judged.items() if value > 0}
    first, other = (_first(one, topic.qid) for one in (row, baseline))
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


def _first(row: RanRow, qid: str) -> Sequence[str]:
    """The first documents, in the order of the run's scores, which fall strictly."""
    ranking = row.run.get(qid, {})
    return sorted(ranking, key=lambda docid: -ranking[docid])[:_FIRST]


def _terms(row: RanRow, topic: Topic) -> tuple[tuple[Weight, ...], tuple[Weight, ...]]:
    """The heaviest terms that raise and that lower a score; none where the method's queries have no terms."""
    if not isinstance(row.method, ComposingMethod):
        return (), ()
    weights = query_terms(row.method.compose(topic))
    positive = [weight for weight in weights if weight[1] > 0][:_TERMS]
    negative = [weight for weight in weights if weight[1] < 0]
    return tuple(positive), tuple(sorted(negative, key=lambda weight: weight[1])[:_TERMS])
