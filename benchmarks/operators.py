"""Every operator on every template of QUEST-like queries: the table of the README.

    python benchmarks/operators.py --dataset FOLDER [--split dev] [--index indexes/filmsets-bm25]

FOLDER holds ``documents.jsonl.gz`` and ``dev.jsonl`` in QUEST's fields. The index (BM25 impacts) is built on the first call.
Prints Markdown on standard output: nDCG@10 and R@100, one table a template, vanilla first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS, UNIONS, Operators
from pyserini_compneg.datasets.qrels import Qrels, read_qrels
from pyserini_compneg.datasets.topics import Topic, read_topics
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import mean
from pyserini_compneg.index import build_index
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.run_writer import printed_scores

MEASURES = parse_measures(["nDCG@10", "R@100"])
DEPTH = 100
VANILLA = Operators("vanilla", "vanilla", "vanilla")

UNION_CHOICES = {name: Operators(union=name) for name in UNIONS if name != "vanilla"}
INTERSECTION_CHOICES = {name: Operators(intersection=name) for name in INTERSECTIONS if name != "vanilla"}
DIFFERENCE_CHOICES = {name: Operators(difference=name) for name in DIFFERENCES if name != "vanilla"}
MIXED_CHOICES = {
    f"{intersection}, {difference}": Operators(intersection=intersection, difference=difference)
    for intersection in ("cpt", "cpt+maxpool", "addition", "maxpool")
    for difference in (DIFFERENCE_CHOICES if intersection == Operators().intersection else ["disentangled"])
}
CHOICES = {
    "_": {},
    "_ that are not _": DIFFERENCE_CHOICES,
    "_ or _": UNION_CHOICES,
    "_ or _ or _": UNION_CHOICES,
    "_ that are also _": INTERSECTION_CHOICES,
    "_ that are also both _ and _": INTERSECTION_CHOICES,
    "_ that are also _ but not _": MIXED_CHOICES,
}


def measure(searcher: SignedImpactSearcher, topics: list[Topic], qrels: Qrels) -> list[float]:
    """The mean of each measure over the topics."""
    qids = [topic.qid for topic in topics]
    results = searcher.batch_search([topic.expression for topic in topics], qids, DEPTH, threads=2)
    run = {
        qid: {hit.docid: score for hit, score in zip(hits, printed_scores(hits), strict=True)}
        for qid, hits in results.items()
    }
    per_query = evaluate({qid: qrels[qid] for qid in qids}, run, MEASURES)
    return [mean(per_query, one, qids) for one in MEASURES]


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--index", type=Path, default=Path("indexes/filmsets-bm25"))
    args = parser.parse_args()
    if not args.index.exists():
        build_index(args.dataset / "documents.jsonl.gz", args.index, threads=2)
    queries = args.dataset / f"{args.split}.jsonl"
    topics, qrels = read_topics(queries), read_qrels(queries)
    for template, choices in CHOICES.items():
        group = [topic for topic in topics if topic.group == template]
        print(f"\n| `{template}` ({len(group)} queries) | nDCG@10 | R@100 |\n|---|---|---|")
        for name, operators in {"vanilla": VANILLA, **choices}.items():
            with SignedImpactSearcher(args.index, operators=operators) as searcher:
                values = measure(searcher, group, qrels)
            print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
