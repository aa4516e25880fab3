"""Compares encoders on several collections: rankings of the default operators, and what they cost.

    python benchmarks/encoders.py --data DATASETS --encoder bm25 FOLDER mini bm25+FOLDER bm25+mini

The folders quest-evidence/, filmsets/, scifact/, cisi/, negconstraint/, excluir/ and comlq/ below DATASETS are
searched; the plain texts of the last three are read by the model of the package. The measure is nDCG@10, and Right Rank
for ExcluIR. QUEST has a row for each domain and template, ComLQ one for each type. The first encoder is what others are
compared with: a cell has the mean and its difference, with the 95 % interval (paired bootstrap over queries). The
second table has the cells that lose more than 0.005. Indexes are kept in indexes/, and are built where missing.
Prints Markdown.
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
from reporting import INDEXES, TOLERANCE, describe, environment, paired, table

from pyserini_compneg.eval.measures import evaluate, parse_measures
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.reading import ModelReader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.files import iter_jsonl, slug
from pyserini_compneg.topics.batch import topic_query
from pyserini_compneg.topics.topics import Topic

SPLITS = {
    "quest-evidence": ["train"],
    "filmsets": ["dev"],
    "scifact": ["test", "train"],
    "cisi": ["all"],
    "negconstraint": ["dev"],
    "excluir": ["dev"],
    "comlq": ["dev"],
}
READ = {"negconstraint", "excluir", "comlq"}
NAMES = {
    "_": "A",
    "_ or _": "A OR B",
    "_ or _ or _": "A OR B OR C",
    "_ that are also _": "A AND B",
    "_ that are also both _ and _": "A AND B AND C",
    "_ that are also _ but not _": "A AND B NOT C",
    "_ that are not _": "A NOT B",
}
TIMED = 100

Values = dict[str, dict[str, float]]
"""By row, such as ``scifact test``, then by query."""


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    args = parser.parse_args()
    values, costs = {}, []
    for encoder in args.encoder:
        values[encoder], cost = _evaluated(encoder, args.data)
        costs.append(cost)
    print(f"\n{_compared(values)}\n\n{_losses(values)}")
    fastest = costs[0][-1]
    rows = [
        [f"`{label(encoder)}`", f"{rate:,.0f}", f"{size:,.0f}", f"{ms:.1f}", f"{ms / fastest:.2f}"]
        for encoder, (rate, size, ms) in zip(args.encoder, costs, strict=True)
    ]
    headers = ["FilmSets", "documents/s", "bytes a document", "ms a query", f"of {label(args.encoder[0])}'s"]
    print(f"\n{table(headers, rows)}\n\n{describe(environment())}")
    return 0


def _evaluated(encoder: str, data: Path) -> tuple[Values, tuple[float, float, float]]:
    """The values of each query by row; and of FilmSets documents/s, bytes a document, ms a query."""
    values: Values = {}
    cost = (0.0, 0.0, 0.0)
    for name, splits in SPLITS.items():
        dataset = open_dataset(data / name)
        index = INDEXES / f"{dataset.name}-{slug(label(encoder))}"
        start = time.perf_counter()
        built = not index.exists()
        if built:
            build_index(dataset.collection or _converted(dataset, splits[0]), index, encoder=encoder)
        took = time.perf_counter() - start
        with SignedImpactSearcher(index, encoder=encoder) as searcher:
            for split in splits:
                qrels = dataset.qrels(split)
                topics = _read([topic for topic in dataset.topics(split) if topic.qid in qrels], name)
                (measure,) = parse_measures(["right_rank" if name == "excluir" else "nDCG@10"])
                found = evaluate(qrels, search(searcher, topics), [measure])
                types = _types(data / name, split)
                for topic in sorted(topics, key=lambda topic: _order(topic, types)):
                    row = f"{dataset.name} {split} {_row(topic, types)}".strip()
                    values.setdefault(row, {})[topic.qid] = found[topic.qid][measure.name]
            if name == "filmsets":
                size = sum(file.stat().st_size for file in index.iterdir()) / searcher.num_docs
                rate = searcher.num_docs / took if built else float("nan")
                cost = rate, size, _milliseconds(searcher, topics)
    return values, cost


def _row(topic: Topic, types: Mapping[str, str]) -> str:
    """The kind of a query: domain and template, or ComLQ's type."""
    return " ".join(filter(None, (topic.metadata.get("domain"), NAMES.get(topic.group or ""), types.get(topic.qid))))


def _order(topic: Topic, types: Mapping[str, str]) -> tuple[str, int, str]:
    templates = list(NAMES)
    place = templates.index(topic.group) if topic.group in templates else 0
    return topic.metadata.get("domain", ""), place, types.get(topic.qid, "")


def _types(folder: Path, split: str) -> dict[str, str]:
    """The types of ComLQ's queries, which their dataset does not have; nothing for others."""
    path = folder / f"queries.{split}.jsonl"
    return (
        {record["_id"]: record["type"] for _, record in iter_jsonl(path) if "type" in record} if path.exists() else {}
    )


def _converted(dataset: Dataset, split: str) -> Path:
    """The documents of a dataset as JSON Lines."""
    path = INDEXES / f"{dataset.name}.jsonl"
    lines = ({"id": document.docid, "contents": document.text} for document in dataset.documents(split))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _read(topics: Sequence[Topic], name: str) -> list[Topic]:
    if name not in READ:
        return list(topics)
    readings = ModelReader().read([topic.text for topic in topics])
    pairs = zip(topics, readings, strict=True)
    return [replace(topic, expression=reading.expression, decomposition=reading) for topic, reading in pairs]


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


def _compared(values: Mapping[str, Values]) -> str:
    """The means, a row for each kind of query."""
    first, *others = values
    rows = []
    for name, base in values[first].items():
        cells = [f"{_mean(values[other][name])} {paired(values[other][name], base)}" for other in others]
        rows.append([name, str(len(base)), _mean(base), *cells])
    return table(["queries", "n", *(f"`{label(encoder)}`" for encoder in values)], rows)


def _losses(values: Mapping[str, Values]) -> str:
    """The cells that are below the first encoder's by more than the tolerance."""
    first, *others = values
    rows = [
        [name, label(other), _mean(base), _mean(found), paired(found, base)]
        for other in others
        for name, base in values[first].items()
        if (found := values[other][name]) and fmean(found.values()) < fmean(base.values()) - TOLERANCE
    ]
    heading = f"Cells that are more than {TOLERANCE} below `{label(first)}`: {len(rows)}"
    return (
        f"{heading}\n\n{table(['queries', 'encoder', label(first), 'mean', 'difference'], rows)}" if rows else heading
    )


def _mean(by_query: Mapping[str, float]) -> str:
    return f"{fmean(by_query.values()):.3f}".removeprefix("0")


def label(encoder: str) -> str:
    """The encoder's name without folders."""
    hybrid, model = encoder.startswith("bm25+"), encoder.removeprefix("bm25+")
    return f"{'bm25+' if hybrid else ''}{Path(model).name}"


if __name__ == "__main__":
    sys.exit(main())
