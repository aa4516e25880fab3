"""What rounding query weights to whole numbers changes, by scale: how the default was chosen.

    python benchmarks/weight_scale.py --queries FILE --index INDEX

FILE has QUEST's fields, such as dev.jsonl of FilmSets. INDEX has its documents; its encoder is that of the queries. For
each scale, over the templates and with the default operators: the largest change of nDCG@10 and of R@100 from what
unrounded weights give, the least share of first ten hits that are the same, and how many queries have the same first
ten hits in the same order. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyserini_compneg.compose import DEFAULT_OPERATORS, WEIGHT_SCALE, quantised
from pyserini_compneg.compose.queries import scoring_trees
from pyserini_compneg.compose.resolve import resolved
from pyserini_compneg.eval.measures import evaluate, mean, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics import read_topics, topic_query

MEASURES = parse_measures(["nDCG@10", "R@100"])
SCALES = (5, 10, 20, 32, 51.2, 64, 100, 128, 256, 1000)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE")
    parser.add_argument("--index", type=Path, required=True)
    args = parser.parse_args()
    topics, qrels = read_topics(args.queries), read_qrels(args.queries)
    with SignedImpactSearcher(args.index) as searcher:
        composed = scoring_trees(list(map(topic_query, topics)), searcher.encoder)
        trees = resolved(composed, DEFAULT_OPERATORS.union, searcher.reader.top_scores, WEIGHT_SCALE)
        qids = [topic.qid for topic in topics]

        def searched(nodes):
            hits = searcher.batch_search(nodes, qids, 100, threads=2)
            values = evaluate(
                qrels, {qid: {hit.docid: -i for i, hit in enumerate(hits[qid])} for qid in qids}, MEASURES
            )
            return values, {qid: [hit.docid for hit in hits[qid][:10]] for qid in qids}

        values, first = searched(trees)
        names = [f"{measure.name} changes by up to" for measure in MEASURES]
        print(f"| scale | {' | '.join(names)} | same hits, at least | same order |\n|---|{'---|' * (len(names) + 2)}")
        for scale in SCALES:
            other, found = searched([quantised(tree, scale) for tree in trees])
            changes, shares = [0.0] * len(MEASURES), []
            for template in {topic.group for topic in topics}:
                group = [topic.qid for topic in topics if topic.group == template]
                for i, measure in enumerate(MEASURES):
                    changes[i] = max(changes[i], abs(mean(other, measure, group) - mean(values, measure, group)))
                kept = sum(len({*first[qid]} & {*found[qid]}) for qid in group)
                shares.append(kept / sum(len(first[qid]) for qid in group))
            same = sum(first[qid] == found[qid] for qid in qids)
            print(f"| {scale:g} | {' | '.join(f'{c:.4f}' for c in changes)} | {min(shares):.1%} | {same}/{len(qids)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
