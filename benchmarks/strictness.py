"""How strict is NOT!, and what does it cost?

    python benchmarks/strictness.py --data DATASETS --encoder bm25 bm25+mini FOLDER

The queries are those of `operators.py` that exclude something, at most 200 of a set, drawn at random. Each is searched
with NOT, and with NOT! for every NOT by `--exclusion score` and by `words`, the default. The columns:

- nDCG@10.
- said@10, said@100: the share of queries with a hit among the first 10 or 100 that has all words of an excluded atom.
  Words are the terms of BM25 in the documents, whatever the vectors are.
- lost: the share of relevant documents that the query finds with its exclusions ignored, and not with them.

`--and` compares AND with AND!. It has the queries with AND, and nDCG@10 and lost alone.

Indexes are kept in indexes/, and are built where they are missing. Prints Markdown.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from dev_sets import index_of, label
from operators import SETS, DevSet
from reporting import describe, environment, table

from pyserini_compneg.commands.running import run_main
from pyserini_compneg.compose import Linear, Operators, Product, ScoringNode
from pyserini_compneg.compose.rewrite import conjunction, differences_as_exclusions
from pyserini_compneg.compose.words import atom_words, clauses
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.expression import Difference, Expression, Filter, Intersection, atoms
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics import Topic

MOST = 200
DEPTH = 100
NDCG = parse_measures(["nDCG@10"])
SYSTEMS = {
    "NOT": (lambda one: one, Operators()),
    "`score`": (differences_as_exclusions, Operators(exclusion="score")),
    "`words`": (differences_as_exclusions, Operators()),
}
AND_SYSTEMS = {
    "AND": (lambda one: one, Operators()),
    "AND!": (lambda one: replace(one, strict=True), Operators()),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--and", action="store_true", dest="conjunctions", help="compare AND with AND!")
    args = parser.parse_args(argv)
    rows = []
    for name in args.sets:
        dev_set = replace(SETS[name], folder=args.data / SETS[name].folder)
        topics = _topics(dev_set, Intersection if args.conjunctions else Difference)
        for encoder in args.encoder:
            with ExitStack() as stack:
                indexes = (index_of(dev_set.dataset, dev_set.split, one) for one in (encoder, "bm25"))
                searcher, texts = (stack.enter_context(SignedImpactSearcher(index)) for index in indexes)
                for system, row in _rows(searcher, texts, topics, dev_set.qrels, args.conjunctions):
                    rows.append([name, str(len(topics)), f"`{label(encoder)}`", system, *row])
                    print(*rows[-1], file=sys.stderr, flush=True)
    said = [] if args.conjunctions else ["said@10", "said@100"]
    print(f"{table(['queries', 'n', 'vectors', '', 'nDCG@10', *said, 'lost'], rows)}\n\n{describe(environment())}")


def _topics(dev_set: DevSet, kind: type[Expression]) -> list[Topic]:
    """A sample of the topics whose expression is an exclusion, or an AND."""
    every = [topic for topics in dev_set.topics.values() for topic in topics if isinstance(topic.expression, kind)]
    return random.Random(0).sample(every, min(MOST, len(every)))


def _rows(
    searcher: SignedImpactSearcher,
    texts: SignedImpactSearcher,
    topics: Sequence[Topic],
    qrels: Mapping[str, Mapping[str, int]],
    conjunctions: bool,
) -> Iterator[tuple[str, list[str]]]:
    """The figures of each system. ``texts`` searches the BM25 index of the same documents."""
    qids = [topic.qid for topic in topics]
    expressions = [topic.expression for topic in topics if topic.expression]
    relevant = [[docid for docid, grade in qrels[qid].items() if grade > 0] for qid in qids]
    wanted = searcher.batch_score(expressions, relevant, operators=Operators(difference="ignore"))
    for system, (changed, operators) in (AND_SYSTEMS if conjunctions else SYSTEMS).items():
        queries = [changed(expression) for expression in expressions]
        found = searcher.batch_search(queries, qids, DEPTH, operators=operators)
        scores = searcher.batch_score(queries, relevant, operators=operators)
        values = evaluate(qrels, {qid: {hit.docid: hit.score for hit in hits} for qid, hits in found.items()}, NDCG)
        figures = [fmean(values[qid]["nDCG@10"] for qid in qids)]
        if not conjunctions:
            ranks = [
                _rank_of_said(texts, expression, [hit.docid for hit in found[qid]])
                for qid, expression in zip(qids, expressions, strict=True)
            ]
            figures += [fmean(rank <= k for rank in ranks) for k in (10, DEPTH)]
        pairs = [pair for groups in zip(wanted, scores, strict=True) for pair in zip(*groups, strict=True)]
        figures.append(fmean(score is None for otherwise, score in pairs if otherwise is not None))
        yield system, [f"{figure:.3f}" for figure in figures]


def _rank_of_said(texts: SignedImpactSearcher, expression: Expression, docids: Sequence[str]) -> float:
    """The rank of the first document that has all words of an excluded atom; infinite if none has."""
    barred = [
        part for part in conjunction(differences_as_exclusions(expression)).barred if not isinstance(part, Filter)
    ]
    names = list(dict.fromkeys(text for part in barred for text in atoms(part)))
    vectors = dict(zip(names, texts.encoder.encode_batch(names), strict=True))
    nodes = list(map(_node, clauses(barred, atom_words(names, texts.encoder, vectors))))
    each = texts.batch_score(nodes, [docids] * len(nodes))
    said = (rank for scores in each for rank, score in enumerate(scores, 1) if score is not None)
    return min(said, default=float("inf"))


def _node(words: Iterable[str]) -> ScoringNode:
    vectors = tuple({word: 1.0} for word in words)
    return Product(vectors) if len(vectors) > 1 else Linear(vectors[0])


if __name__ == "__main__":
    sys.exit(main())
