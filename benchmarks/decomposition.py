"""Measures decomposed plain queries with each operator for NOT, and counts how many are taken apart by which cues.

    python benchmarks/decomposition.py --dataset FOLDER [--split dev] [--index indexes/FOLDER-bm25] [--wrong]
    python benchmarks/decomposition.py --dataset FOLDER [--split dev] --readings

FOLDER is a dataset as `open_dataset` takes it. Where each query has an excluded document, the measures are those of
ExcluIR and R@10, else nDCG@10 and R@100. For datasets with QUEST's templates the output also has the measures of the
marked expressions, and counts the readings that equal them. The index (BM25 impacts) is built on the first call. With
--readings no index is needed: the output says only how the texts of all queries are read. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyserini_compneg.compose import Operators
from pyserini_compneg.eval.measures import Measure, evaluate, mean, parse_measures
from pyserini_compneg.experiments.datasets import open_dataset
from pyserini_compneg.expression import Atom, Difference, Expression, format_expression
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.index import build_index
from pyserini_compneg.reading import Decomposition, decompose, or_undivided
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.guard import search_guarded
from pyserini_compneg.search.run_writer import printed_scores

CONTRAST = ("right_rank", "right_rank@10", "delta_recall@1", "delta_mrr@10", "R@10")
RANKING = ("nDCG@10", "R@100")
MOST_FOR_ALL = 10_000
"""Runs have all documents of a collection of at most this size, and 1,000 of a larger one."""
DAMPINGS = (0.2, 0.3, 0.4)
read = or_undivided(decompose)
"""As `--decompose cues --fallback vanilla`."""
DIFFERENCES = ("ignore", "disentangled", "subtraction", "nrf", "constant", "orthogonal", "damped")
GUARDED = "`damped`, guarded"

Run = Mapping[str, Mapping[str, float]]


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--index", type=Path, metavar="DIR")
    parser.add_argument("--wrong", action="store_true", help="list the queries whose excluded document comes first")
    parser.add_argument("--readings", action="store_true", help="only say how the texts are read")
    args = parser.parse_args()
    dataset = open_dataset(args.dataset)
    topics = dataset.topics(args.split)
    start = time.perf_counter()
    readings = {topic.qid: read(topic.text) for topic in topics}
    seconds = time.perf_counter() - start
    print(f"{len(topics)} queries, {sum(bool(r.reasons) for r in readings.values())} split, in {seconds:.2f} s\n")
    describe(topics, readings)
    if args.readings:
        return 0
    index = args.index or Path("indexes") / f"{dataset.name}-bm25"
    if not index.exists():
        build_index(dataset.collection, index)
    qrels = dataset.qrels(args.split)
    wrong = compare(index, [topic for topic in topics if topic.qid in qrels], readings, qrels)
    if args.wrong:
        for qid in wrong:
            print(f"- {qid}: {format_expression(readings[qid].expression)}")
    return 0


def describe(topics: Sequence[Topic], readings: Mapping[str, Decomposition]) -> None:
    """Prints how many queries are taken apart, and why."""
    kinds = Counter(", ".join(sorted({r.kind for r in reading.reasons})) or "(whole)" for reading in readings.values())
    print("| reasons | queries |\n|---|---|")
    for kind, count in kinds.most_common():
        print(f"| {kind} | {count} |")
    print()
    groups = Counter(topic.group for topic in topics if topic.group)
    equal = Counter(
        topic.group
        for topic in topics
        if topic.group and operands(readings[topic.qid].expression) == operands(topic.expression)
    )
    if groups:
        print("| template | readings equal to the marks | queries |\n|---|---|---|")
        for group, count in groups.items():
            print(f"| `{group}` | {equal[group]} | {count} |")
        print()


def operands(expression: Expression | None) -> object:
    """The expression with the operands of unions and intersections in a fixed order."""
    match expression:
        case None:
            return None
        case Atom(text):
            return text
        case Difference(left, right):
            return "NOT", operands(left), operands(right)
    return type(expression).__name__, *sorted(map(repr, map(operands, expression.operands)))


def compare(
    index: Path,
    topics: Sequence[Topic],
    readings: Mapping[str, Decomposition],
    qrels: Mapping[str, Mapping[str, int]],
) -> list[str]:
    """Prints the measures of each operator; returns the queries that are wrong with `damped`."""
    contrast = all(sorted(judged.values()) == [0, 1] for judged in qrels.values())
    measures = parse_measures(CONTRAST if contrast else RANKING)
    whole = [replace(topic, expression=Atom(topic.text)) for topic in topics]
    read_as = [
        replace(topic, expression=readings[topic.qid].expression, decomposition=readings[topic.qid]) for topic in topics
    ]
    rows: list[tuple[str, Sequence[Topic], Operators]] = [("whole text", whole, Operators())]
    if any(topic.group for topic in topics):
        rows.append(("marked expressions", topics, Operators()))
    rows += [(f"`{name}`", read_as, Operators(difference=name)) for name in DIFFERENCES]
    rows.append((GUARDED, read_as, Operators(difference="damped")))
    rows += [
        (f"`damped`, λ = {weight}", read_as, Operators(difference="damped", difference_weight=weight))
        for weight in DAMPINGS
    ]
    print(f"| | {' | '.join(measure.name for measure in measures)} |\n|---|{'---|' * len(measures)}")
    wrong: list[str] = []
    for name, asked, operators in rows:
        with SignedImpactSearcher(index, operators=operators) as searcher:
            run = search(searcher, asked, guard=name == GUARDED)
        values = show(name, run, qrels, measures)
        if contrast and name == "`damped`":
            wrong = [qid for qid, value in values.items() if not value["right_rank"]]
    print()
    return wrong


def search(searcher: SignedImpactSearcher, topics: Sequence[Topic], guard: bool = False) -> Run:
    """The scores of the documents; of all of them in a small collection."""
    k = searcher.num_docs if searcher.num_docs <= MOST_FOR_ALL else 1000
    if guard:
        hits = search_guarded(searcher, topics, k, threads=2)
    else:
        hits = searcher.batch_search([t.expression for t in topics], [t.qid for t in topics], k, threads=2)
    return {
        qid: dict(zip([hit.docid for hit in ranked], printed_scores(ranked), strict=True))
        for qid, ranked in hits.items()
    }


def show(name: str, run: Run, qrels: Mapping[str, Mapping[str, int]], measures: Sequence[Measure]) -> Run:
    """Prints a row; returns the values by query."""
    values = evaluate(qrels, run, measures)
    means = [mean(values, measure, list(qrels)) for measure in measures]
    print(f"| {name} | {' | '.join(f'{value:.4f}' for value in means)} |")
    return values


if __name__ == "__main__":
    sys.exit(main())
