"""What should NOT! exclude? Rankings of each setting of ``exclusion``, beside NOT.

    python benchmarks/exclusions.py --data DATASETS --encoder bm25 bm25+mini FOLDER

The topics of dev in DATASETS/filmsets that hold NOT are searched as they are, and with NOT! in its place. A cell has
nDCG@10 and R@100. Indexes are those of ``encoders.py``. The default was chosen by this table, so it is tuned on dev.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from encoders import MEASURES, NAMES, label
from reading import search
from reporting import INDEXES, describe, environment, table

from pyserini_compneg.compose import Operators
from pyserini_compneg.eval.measures import evaluate
from pyserini_compneg.experiments.datasets import open_dataset
from pyserini_compneg.expression import Difference, Exclusion
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.files import slug
from pyserini_compneg.index import build_index
from pyserini_compneg.search import SignedImpactSearcher

SETTINGS = ("any", "all", 0.2, 0.4, 0.5, 0.6, 0.8)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATASETS")
    parser.add_argument("--encoder", nargs="+", required=True, metavar="NAME")
    args = parser.parse_args()
    dataset = open_dataset(args.data / "filmsets")
    qrels = dataset.qrels("dev")
    soft = [t for t in dataset.topics("dev") if t.qid in qrels and isinstance(t.expression, Difference)]
    hard = [_with_exclusion(topic) for topic in soft]
    rows = []
    for encoder in args.encoder:
        index = INDEXES / f"filmsets-{slug(label(encoder))}"
        if not index.exists():
            build_index(dataset.collection, index, encoder=encoder)
        with SignedImpactSearcher(index, encoder=encoder) as searcher:
            found = [evaluate(qrels, search(searcher, soft), MEASURES)]
            for setting in SETTINGS:
                searcher.operators = Operators(exclusion=setting)
                found.append(evaluate(qrels, search(searcher, hard), MEASURES))
        for group in dict.fromkeys(topic.group for topic in soft):
            qids = [topic.qid for topic in soft if topic.group == group]
            means = [[fmean(values[qid][m.name] for qid in qids) for m in MEASURES] for values in found]
            cells = [", ".join(f"{mean:.3f}" for mean in pair) for pair in means]
            rows.append([label(encoder), NAMES.get(group or "", group or ""), *cells])
    print(f"{table(['vectors', 'query', 'NOT', *map(str, SETTINGS)], rows)}\n\n{describe(environment())}")
    return 0


def _with_exclusion(topic: Topic) -> Topic:
    """The topic with NOT! in place of NOT."""
    if not isinstance(topic.expression, Difference):
        raise ValueError(f"topic {topic.qid} has no NOT")
    return replace(topic, expression=Exclusion(topic.expression.left, topic.expression.right))


if __name__ == "__main__":
    sys.exit(main())
