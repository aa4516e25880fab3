"""Compares operators: each kind of query through every operator that can answer it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.compose import DEFAULT_OPERATORS, DIFFERENCES, INTERSECTIONS, UNIONS, Operators
from pyserini_compneg.datasets.qrels import Qrels, read_qrels
from pyserini_compneg.datasets.topics import Topic, read_topics
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import mean
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.run_writer import printed_scores

MEASURES = parse_measures(["nDCG@10", "R@100"])
VANILLA = Operators("vanilla", "vanilla", "vanilla")


class Comparison(NamedTuple):
    """The queries of one template through one choice of operators.

    Attributes:
        template: QUEST's name for the queries, such as ``_ that are not _``.
        queries: How many there are.
        operators: The choice, in words.
        values: The mean of each measure of ``MEASURES``.
    """

    template: str
    queries: int
    operators: str
    values: Sequence[float]


def compare_operators(
    index: Path, queries: Path, depth: int = 100, threads: int = 2, settings: Operators = DEFAULT_OPERATORS
) -> Iterator[Comparison]:
    """Runs each template's queries through vanilla and every operator of their kind.

    Args:
        index: An index of the collection.
        queries: A QUEST file: queries with marks, templates and relevant documents.
        depth: Hits a query.
        threads: Queries at once.
        settings: The weights of the operators, and what stands for the kinds that are not compared.

    Raises:
        CollectionError: A file whose queries have no templates.
    """
    topics, qrels = read_topics(queries), read_qrels(queries)
    groups: dict[str, list[Topic]] = {}
    for topic in topics:
        if topic.group is None:
            raise CollectionError(f"{queries}: query {topic.qid} has no metadata.template to group it by")
        groups.setdefault(topic.group, []).append(topic)
    with SignedImpactSearcher(index) as searcher:
        for template in sorted(groups, key=len):
            group = groups[template]
            for name, operators in choices(template, settings).items():
                searcher.operators = operators
                values = _values(_search(searcher, group, depth, threads), qrels)
                yield Comparison(template, len(group), name, values)


def choices(template: str, settings: Operators = DEFAULT_OPERATORS) -> Mapping[str, Operators]:
    """The choices that make a difference to a template's queries, vanilla first.

    >>> list(choices("_ or _"))
    ['vanilla', 'maxpool', 'addition', 'dismax']
    """
    conjunction, negation = "also" in template, "not" in template
    if conjunction and negation:
        default = settings
        names = [(name, default.difference) for name in INTERSECTIONS if name != "vanilla"]
        names += [(default.intersection, name) for name in DIFFERENCES if name not in ("vanilla", default.difference)]
        mixed = {f"{both}, {but}": replace(settings, intersection=both, difference=but) for both, but in names}
        return {"vanilla": VANILLA} | mixed
    if conjunction:
        return {"vanilla": VANILLA} | {n: replace(settings, intersection=n) for n in INTERSECTIONS if n != "vanilla"}
    if negation:
        return {"vanilla": VANILLA} | {n: replace(settings, difference=n) for n in DIFFERENCES if n != "vanilla"}
    if " or " in template:
        return {"vanilla": VANILLA} | {n: replace(settings, union=n) for n in UNIONS if n != "vanilla"}
    return {"vanilla": VANILLA}


def markdown_table(rows: Sequence[Comparison]) -> str:
    """A table of all rows; the best value of each template and measure in bold."""
    text = f"| template (queries) | operators | {' | '.join(measure.name for measure in MEASURES)} |\n"
    text += f"|---|---|{'---|' * len(MEASURES)}\n"
    for template in dict.fromkeys(row.template for row in rows):
        group = [row for row in rows if row.template == template]
        best = [max(row.values[i] for row in group) for i in range(len(MEASURES))]
        for row in group:
            label = f"`{template}` ({row.queries})" if row is group[0] else ""
            cells = (_cell(value, top, len(group)) for value, top in zip(row.values, best, strict=True))
            text += f"| {label} | {row.operators} | {' | '.join(cells)} |\n"
    return text


def _cell(value: float, best: float, rows: int) -> str:
    shown = f"{value:.3f}"
    return f"**{shown}**" if rows > 1 and shown == f"{best:.3f}" else shown


def _search(
    searcher: SignedImpactSearcher, topics: Sequence[Topic], depth: int, threads: int
) -> Mapping[str, Sequence[Hit]]:
    expressions = [topic.expression for topic in topics if topic.expression is not None]
    return searcher.batch_search(expressions, [topic.qid for topic in topics], depth, threads)


def _values(results: Mapping[str, Sequence[Hit]], qrels: Qrels) -> list[float]:
    run = {
        qid: dict(zip((hit.docid for hit in hits), printed_scores(hits), strict=True)) for qid, hits in results.items()
    }
    per_query = evaluate({qid: qrels[qid] for qid in results}, run, MEASURES)
    return [mean(per_query, measure, list(results)) for measure in MEASURES]
