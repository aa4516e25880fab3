"""Pairs in an index: what they cost, and how many of the factored form's hits they find, on real vectors.

    python benchmarks/pairs.py --collection VECTORS --encoder MODEL --topics TOPICS [--log TOPICS] [--qrels QRELS]
        [--pair-terms 20 50 100 256] [--threads N]

Builds an index of the vectors that ``encode`` wrote without pairs, and one for each choice of pairs: the pairs of each
document's N heaviest terms; the pairs that the topics have together; and those of the --log, other queries. The topics
with an AND of two operands then run on all of them by the paper's operators, cpt and disentangled: factored on the
index without pairs, materialised on the others. A line gives the indexing rate, the bytes of the index, the median
latency, nDCG@10, and the share of the factored form's first ten hits that the materialised form finds: it misses a
document whose pair is not stored. Judgements of documents that are not in the collection are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from measuring import folder_bytes, in_child, run_command, timed
from reporting import INDEXES, describe, environment, table

from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.adapting import FACTORED, MATERIALISED
from pyserini_compneg.compose.rewrite import conjunction
from pyserini_compneg.documents.collection import collection_files
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.files import iter_lines
from pyserini_compneg.support.processors import processors
from pyserini_compneg.topics import read_topics

TOP = 10
PAPER = Operators(union="maxpool", intersection="cpt", difference="disentangled")
NO_PAIRS = "factored, no pairs"


def build(args: argparse.Namespace, documents: int, index: Path, options: Sequence[str]) -> list[str]:
    """Builds an index; returns its rate and its size, to be read."""
    command = [sys.executable, "-m", "pyserini_compneg.index", "--collection", args.collection, "--index", str(index)]
    command += ["--encoder", args.encoder, "--threads", str(args.threads), "--optimize", "--no-reorder", *options]
    seconds = run_command(command).seconds
    return [f"{documents / seconds:,.0f}", f"{folder_bytes(index) / documents:,.0f}"]


def search(folders: Mapping[str, Path], topics: str, qrels: str | None, rounds: int) -> list[list[str]]:
    """Searches all indexes; returns for each its median latency, its nDCG@10 and the share of hits, to be read."""
    asked = {
        topic.qid: topic.expression
        for topic in read_topics(topics)
        if topic.expression is not None and len(conjunction(topic.expression).kept) == 2
    }
    queries, qids = list(asked.values()), list(asked)
    (measure,) = parse_measures("nDCG@10")
    searches, runs = {}, {}
    searchers = {
        name: SignedImpactSearcher(folder, operators=PAPER, cpt=FACTORED if name == NO_PAIRS else MATERIALISED)
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
    wanted = sum(map(len, runs[NO_PAIRS].values()))
    rows = []
    for name, taken in timed(searches, rounds).items():
        found = {qid: {hit.docid: hit.score for hit in hits} for qid, hits in runs[name].items()}
        values = evaluate({qid: grades for qid, grades in judged.items() if grades}, found, [measure])
        ndcg = np.mean([one[measure.name] for one in values.values()]) if judged else np.nan
        share = sum(len({hit.docid for hit in runs[NO_PAIRS][qid]} & found[qid].keys()) for qid in asked) / wanted
        rows.append([f"{np.median(taken.wall):.2f}", f"{ndcg:.3f}", f"{share:.3f}"])
    for searcher in searchers.values():
        searcher.close()
    return rows


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", required=True, metavar="VECTORS")
    parser.add_argument("--encoder", required=True, metavar="MODEL")
    parser.add_argument("--topics", required=True)
    parser.add_argument("--log", metavar="TOPICS", help="other queries, whose pairs are indexed")
    parser.add_argument("--qrels", help="judgements of the topics")
    parser.add_argument("--pair-terms", type=int, nargs="+", default=[20, 50, 100, 256], metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=processors())
    args = parser.parse_args()
    choices = {NO_PAIRS: [], **{f"--pair-terms {n}": ["--pair-terms", str(n)] for n in sorted(set(args.pair_terms))}}
    choices["--pairs-from, the queries"] = ["--pairs-from", args.topics]
    if args.log:
        choices["--pairs-from, other queries"] = ["--pairs-from", args.log]
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as name:
        folders = {choice: Path(name) / str(number) for number, choice in enumerate(choices)}
        documents = sum(
            bool(line.strip()) for file in collection_files(args.collection) for _, line in iter_lines(file.path)
        )
        built = [build(args, documents, folders[choice], options) for choice, options in choices.items()]
        searched = in_child(search, folders, args.topics, args.qrels, args.rounds)
    rows = [[choice, *costs, *found] for choice, costs, found in zip(choices, built, searched, strict=True)]
    heads = ["form", "documents/s", "bytes/document", f"k={TOP}, median ms", "nDCG@10", f"of factored's top {TOP}"]
    print(f"{documents:,} documents, {args.rounds} rounds, {args.threads} threads")
    print(f"{describe(environment())}\n\n{table(heads, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
