"""Pairs in an index: what they cost, and how many of the factored form's hits they find, on real vectors.

    python benchmarks/pairs.py --collection VECTORS --encoder MODEL --topics TOPICS [--log TOPICS] [--qrels QRELS]
        [--pair-terms 20 50 100 256] [--pair-scale 1 8] [--operators default] [--without-not] [--threads N]

Builds an index without pairs of the vectors that ``encode`` wrote, or of texts for ``bm25``, and one for each choice of
pairs: the pairs of each document's N heaviest terms; the pairs that the topics have together; and those of the --log,
other queries. The topics with an AND of two operands then run on all of them, by default with the paper's operators:
factored on the index without pairs, materialised on the others. A line gives the indexing rate without the start of
Java, the bytes of the index, the median latency, nDCG@10, and two comparisons with the factored form: the share of its
first ten hits that the materialised form finds, as it misses a document whose pair is not stored; and for how many
topics both have the same ten hits in the same order. "widest" is the largest gap between the factored scores of two
documents that change places, as a share of the higher score; a document that the factored form does not find among
1,000 has the score 0. Judgements of documents that are not in the collection are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from measuring import folder_bytes, in_child, timed
from reporting import INDEXES, describe, environment, table

from pyserini_compneg.compose import Operators, query_pairs
from pyserini_compneg.compose.adapting import FACTORED, MATERIALISED
from pyserini_compneg.compose.operators import OPERATOR_SETS
from pyserini_compneg.compose.rewrite import conjunction
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import java_class
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.support.processors import processors
from pyserini_compneg.support.vectors import PAIR_SCALE
from pyserini_compneg.topics import read_topics

TOP, DEEP = 10, 1000
PAPER = Operators(union="maxpool", intersection="cpt", difference="disentangled")
NO_PAIRS = "factored, no pairs"


def build(collection: str, encoder: str, threads: int, index: Path, options: Mapping[str, Any]) -> list[str]:
    """Builds an index; returns its rate and its size, to be read."""
    java_class("io.compneg.index.ImpactIndexer")  # Java starts
    start = time.perf_counter()
    made = build_index(collection, index, encoder, threads=threads, optimize=True, reorder=False, **options)
    rate = made.documents / (time.perf_counter() - start)
    return [f"{rate:,.0f}", f"{folder_bytes(index) / made.documents:,.0f}"]


def pairs_of(index: Path, topics: str) -> tuple[str, ...]:
    """The pairs that an index needs for topics, by ``cpt`` and ``cpt-maxpool``."""
    queries = [topic.expression for topic in read_topics(topics) if topic.expression is not None]
    with SignedImpactSearcher(index) as searcher:
        both = [searcher.compose(queries, replace(PAPER, intersection=name)) for name in ("cpt", "cpt-maxpool")]
    return query_pairs([node for nodes in both for node in nodes])


def search(folders: Mapping[str, Path], args: argparse.Namespace) -> list[list[str]]:
    """Searches all indexes; returns for each its median latency, nDCG@10 and comparisons, to be read."""
    qrels, rounds, operators = args.qrels, args.rounds, Operators.named(args.operators)
    asked = {
        topic.qid: topic.expression
        for topic in read_topics(args.topics)
        if topic.expression is not None
        and len(conjunction(topic.expression).kept) == 2
        and not (args.without_not and conjunction(topic.expression).excluded)
    }
    queries, qids = list(asked.values()), list(asked)
    (measure,) = parse_measures("nDCG@10")
    searches, runs = {}, {}
    searchers = {
        name: SignedImpactSearcher(folder, operators=operators, cpt=FACTORED if name == NO_PAIRS else MATERIALISED)
        for name, folder in folders.items()
    }
    judged = {
        qid: {docid: grade for docid, grade in grades.items() if searchers[NO_PAIRS].reader.has(docid)}
        for qid, grades in (read_qrels(qrels) if qrels else {}).items()
        if qid in asked
    }
    for name, searcher in searchers.items():
        nodes = searcher.compose(queries)
        searches[name] = [partial(searcher.reader.search, [node], TOP) for node in nodes]
        runs[name] = searcher.batch_search(queries, qids, TOP)
    print(f"{len(asked)} topics, of which {sum(map(bool, judged.values()))} have a judged document in the collection")
    factored = {
        qid: {hit.docid: hit.score for hit in hits}
        for qid, hits in searchers[NO_PAIRS].batch_search(queries, qids, DEEP).items()
    }
    wanted = sum(map(len, runs[NO_PAIRS].values()))
    rows = []
    for name, taken in timed(searches, rounds).items():
        found = {qid: {hit.docid: hit.score for hit in hits} for qid, hits in runs[name].items()}
        values = evaluate({qid: grades for qid, grades in judged.items() if grades}, found, [measure])
        ndcg = np.mean([one[measure.name] for one in values.values()]) if judged else np.nan
        share = sum(len({hit.docid for hit in runs[NO_PAIRS][qid]} & found[qid].keys()) for qid in asked) / wanted
        same = sum(ids(runs[name][qid]) == ids(runs[NO_PAIRS][qid]) for qid in asked)
        rankings = {qid: dict.fromkeys(ids(runs[name][qid]) + ids(runs[NO_PAIRS][qid])) for qid in asked}
        widest = max(exchanged([factored[qid].get(one, 0.0) for one in ranked]) for qid, ranked in rankings.items())
        cells = [f"{np.median(taken.wall):.2f}", f"{ndcg:.3f}", f"{share:.3f}", f"{same} of {len(asked)}"]
        rows.append([*cells, f"{widest:.3%}"])
    for searcher in searchers.values():
        searcher.close()
    return rows


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.docid for hit in hits]


def exchanged(scores: Sequence[float]) -> float:
    """The largest gap between an earlier score and a later one that is higher, as a share of the higher one.

    >>> exchanged([4.0, 1.5, 3.0, 1.0, 1.25])
    0.5
    """
    return max((1 - one / other for one, other in combinations(scores, 2) if one < other), default=0.0)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", required=True, metavar="VECTORS")
    parser.add_argument("--encoder", required=True, metavar="MODEL")
    parser.add_argument("--topics", required=True)
    parser.add_argument("--log", metavar="TOPICS", help="other queries, whose pairs are indexed")
    parser.add_argument("--qrels", help="judgements of the topics")
    parser.add_argument("--pair-terms", type=int, nargs="+", default=[20, 50, 100, 256], metavar="N")
    parser.add_argument("--pair-scale", type=int, nargs="+", default=[PAIR_SCALE], metavar="N")
    parser.add_argument("--operators", choices=OPERATOR_SETS, default="paper")
    parser.add_argument("--without-not", action="store_true", help="only topics without NOT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=processors())
    args = parser.parse_args()
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as name:
        folders = {NO_PAIRS: Path(name) / "0"}
        making = partial(in_child, build, args.collection, args.encoder, args.threads)
        built = [making(folders[NO_PAIRS], {})]
        choices: dict[str, dict[str, Any]] = {f"--pair-terms {n}": {"pair_terms": n} for n in sorted(args.pair_terms)}
        choices["--pairs-from, the queries"] = {"pairs": in_child(pairs_of, folders[NO_PAIRS], args.topics)}
        if args.log:
            choices["--pairs-from, other queries"] = {"pairs": in_child(pairs_of, folders[NO_PAIRS], args.log)}
        for choice, options in choices.items():
            for scale in args.pair_scale:
                folder = folders[f"{choice}, scale {scale}"] = Path(name) / str(len(folders))
                built.append(making(folder, {**options, "pair_scale": scale}))
        searched = in_child(search, folders, args)
    rows = [[choice, *costs, *found] for choice, costs, found in zip(folders, built, searched, strict=True)]
    heads = [
        "form",
        "documents/s",
        "bytes/document",
        f"k={TOP}, median ms",
        "nDCG@10",
        f"of factored's top {TOP}",
        "the same",
        "widest",
    ]
    print(f"{args.rounds} rounds, {args.threads} threads, operators {args.operators}")
    print(f"{describe(environment())}\n\n{table(heads, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
