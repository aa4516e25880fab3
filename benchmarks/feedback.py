"""Relevance feedback: the first documents of a ranking are judged, and Rocchio's method ranks the others again.

A user looks at the first documents of each query, and says which are relevant: those of the dataset's judgements. These
documents are left out of all rankings and of the judgements (a residual collection), so nobody gains by showing them
again. Queries without a relevant document among the others are left out.

    python benchmarks/feedback.py --dataset data/quest-evidence --split train --index indexes/quest-evidence
"""

from __future__ import annotations

import argparse

from pyserini_compneg.baselines import Rocchio
from pyserini_compneg.eval import evaluate, make_rows, parse_measures
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.support.processors import processors

MEASURES = ("nDCG@10", "R@100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--split", required=True)
    parser.add_argument("--index", required=True, help="an index of the dataset's documents")
    parser.add_argument("--seen", type=int, default=10, help="documents that the user looks at")
    parser.add_argument("--beta", type=float, default=0.75)
    parser.add_argument("--gamma", type=float, nargs="+", default=[0.0, 0.25])
    parser.add_argument("--terms", type=int, nargs="+", default=[20, 100, 10**6])
    args = parser.parse_args()
    dataset, measures = open_dataset(args.dataset), parse_measures(MEASURES)
    topics, qrels = dataset.topics(args.split), dataset.qrels(args.split)
    queries, qids = [topic.expression for topic in topics], [topic.qid for topic in topics]
    threads = processors()
    with SignedImpactSearcher(args.index) as searcher:

        def runs(method: Rocchio | None) -> dict[str, list[Hit]]:
            return searcher.batch_search(queries, qids, 100 + args.seen, threads, method=method)

        first = runs(None)
        judged = {
            qid: {hit.docid: int(qrels[qid].get(hit.docid, 0) > 0) for hit in hits[: args.seen]}
            for qid, hits in first.items()
        }
        rankings = {"no feedback": first}
        for gamma in args.gamma:
            for terms in args.terms:
                rankings[f"gamma {gamma:g}, {terms} terms"] = runs(Rocchio(judged, args.beta, gamma, terms))
    left = {qid: {d: grade for d, grade in qrels[qid].items() if d not in judged[qid]} for qid in qids}
    left = {qid: grades for qid, grades in left.items() if any(grade > 0 for grade in grades.values())}
    results = {}
    for name, ranking in rankings.items():
        run = {q: {hit.docid: hit.score for hit in ranking[q] if hit.docid not in judged[q]} for q in left}
        results[name] = evaluate(left, run, measures)
    groups = {topic.qid: topic.group for topic in topics if topic.group and topic.qid in left}
    for row in make_rows(results, measures, groups, qrels=left):
        shown = []
        for name, figure in row.figures.items():
            low, high = figure.interval or (figure.value, figure.value)
            is_better = "no feedback" in figure.better_than()
            shown.append(f"{name} {figure.value:.3f}{'*' * is_better} ({low:.3f} to {high:.3f})")
        print(f"{row.group:<32} {len(row.per_query):>4} queries  {row.run:<24} {'  '.join(shown)}")


if __name__ == "__main__":
    main()
