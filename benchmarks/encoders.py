"""Compares encoders on several collections: rankings of the default operators, and what they cost.

    python benchmarks/encoders.py --data DATASETS --encoder bm25 FOLDER mini bm25+FOLDER bm25+mini

The folders filmsets/, scifact/, cisi/, negconstraint/ and excluir/ below DATASETS are searched; plain texts of the last
two are read by the model of the package, and their exclusions are `damped`; the columns of excluir/ have Right Rank
and R@10. The first encoder is what others are compared with: * marks a difference with p < 0.05 (paired t-test, Holm's
correction over a column). Indexes are kept in indexes/, and are built where they are missing. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from reading import search
from reporting import INDEXES, describe, environment, table

from pyserini_compneg import decompose
from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.eval.measures import evaluate, parse_measures
from pyserini_compneg.eval.significance import holm, t_test
from pyserini_compneg.experiments.datasets import open_dataset
from pyserini_compneg.experiments.datasets.dataset import Dataset
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.files import slug
from pyserini_compneg.index import build_index
from pyserini_compneg.search import SignedImpactSearcher

SPLITS = {"filmsets": ["dev"], "scifact": ["test", "train"], "cisi": ["all"], "negconstraint": ["dev"]}
READ = {"negconstraint": ["dev"], "excluir": ["dev"]}
SPLITS |= READ
NAMES = {
    "_": "A",
    "_ or _": "A OR B",
    "_ or _ or _": "A OR B OR C",
    "_ that are also _": "A AND B",
    "_ that are also both _ and _": "A AND B AND C",
    "_ that are also _ but not _": "A AND B NOT C",
    "_ that are not _": "A NOT B",
}
MEASURES = parse_measures(["nDCG@10", "R@100"])
EXCLUIR = parse_measures(["right_rank", "R@10"])
"""In their place for ExcluIR."""

TIMED = 100

Values = dict[str, dict[str, float]]
"""By column, such as ``scifact test``, then by query."""


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    args = parser.parse_args()
    values: dict[str, dict[str, Values]] = {measure.name: {} for measure in MEASURES}
    costs = []
    for encoder in args.encoder:
        found, cost = _evaluated(encoder, args.data)
        costs.append(cost)
        for measure in MEASURES:
            values[measure.name][encoder] = found[measure.name]
    for measure in MEASURES:
        print(f"\n{_compared(measure.name, values[measure.name])}")
    fastest = costs[0][-1]
    rows = [
        [f"`{label(encoder)}`", f"{rate:,.0f}", f"{size:,.0f}", f"{ms:.1f}", f"{ms / fastest:.2f}"]
        for encoder, (rate, size, ms) in zip(args.encoder, costs, strict=True)
    ]
    headers = ["FilmSets", "documents/s", "bytes a document", "ms a query", f"of {label(args.encoder[0])}'s"]
    print(f"\n{table(headers, rows)}\n\n{describe(environment())}")
    return 0


def _evaluated(encoder: str, data: Path) -> tuple[dict[str, Values], tuple[float, float, float]]:
    """The values of each query by measure and column; and of FilmSets documents/s, bytes a document, ms a query."""
    values: dict[str, Values] = {measure.name: {} for measure in MEASURES}
    cost = (0.0, 0.0, 0.0)
    for name, splits in SPLITS.items():
        dataset = open_dataset(data / name)
        index = INDEXES / f"{name}-{slug(label(encoder))}"
        start = time.perf_counter()
        built = not index.exists()
        if built:
            build_index(dataset.collection or _converted(dataset, splits[0]), index, encoder=encoder)
        took = time.perf_counter() - start
        operators = Operators(difference="damped") if name in READ else None
        with SignedImpactSearcher(index, encoder=encoder, operators=operators) as searcher:
            for split in splits:
                qrels = dataset.qrels(split)
                topics = [_read(topic, name) for topic in dataset.topics(split) if topic.qid in qrels]
                measures = EXCLUIR if name == "excluir" else MEASURES
                found = evaluate(qrels, search(searcher, topics), measures)
                for topic in topics:
                    column = NAMES.get(topic.group or "", f"{name} {split}")
                    for place, measure in zip(MEASURES, measures, strict=True):
                        values[place.name].setdefault(column, {})[topic.qid] = found[topic.qid][measure.name]
            if name == "filmsets":
                size = sum(file.stat().st_size for file in index.iterdir()) / searcher.num_docs
                rate = searcher.num_docs / took if built else float("nan")
                cost = rate, size, _milliseconds(searcher, topics)
    return values, cost


def _converted(dataset: Dataset, split: str) -> Path:
    """The documents of a dataset as JSON Lines."""
    path = INDEXES / f"{dataset.name}.jsonl"
    lines = ({"id": document.docid, "contents": document.text} for document in dataset.documents(split))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _read(topic: Topic, name: str) -> Topic:
    if name not in READ:
        return topic
    reading = decompose(topic.text)
    return replace(topic, expression=reading.expression, decomposition=reading)


def _milliseconds(searcher: SignedImpactSearcher, topics: Sequence[Topic]) -> float:
    """The median time of a query, of those that are spread over the topics; each is searched twice."""
    times = []
    for topic in topics[:: max(1, len(topics) // TIMED)]:
        for _ in range(2):
            start = time.perf_counter()
            searcher.search(topic_query(topic), 1000)
            last = time.perf_counter() - start
        times.append(1000 * last)
    return median(times)


def _compared(measure: str, values: Mapping[str, Values]) -> str:
    """The means, a row for each encoder."""
    first, *others = values
    columns = list(values[first])
    marks: dict[tuple[str, str], str] = {}
    for column in columns:
        base = values[first][column]
        tests = [t_test([values[other][column][qid] - base[qid] for qid in base]) for other in others]
        for other, corrected in zip(others, holm(tests), strict=True):
            marks[other, column] = "*" if corrected < 0.05 else ""
    rows = []
    for name, found in values.items():
        means = [f"{fmean(found[column].values()):.3f}".removeprefix("0") for column in columns]
        marked = [mean + marks.get((name, column), "") for column, mean in zip(columns, means, strict=True)]
        rows.append([f"`{label(name)}`", *marked])
    return table([measure, *columns], rows)


def label(encoder: str) -> str:
    """The encoder's name without folders."""
    hybrid, model = encoder.startswith("bm25+"), encoder.removeprefix("bm25+")
    return f"{'bm25+' if hybrid else ''}{Path(model).name}"


if __name__ == "__main__":
    sys.exit(main())
