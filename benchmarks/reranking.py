"""How many pairs of a query and a document rerankers score in a second of one thread.

    OMP_NUM_THREADS=1 python benchmarks/reranking.py [--collection FILE] [--documents 100] [--queries 6]
                                                     [--models FOLDER]

Some queries of the sample are paired with the same documents, as with the first 100 of a ranking. A bi-encoder encodes
the documents for the first query and keeps their vectors for the others; a cross-encoder reads every pair. The default
is all-MiniLM-L6-v2, and a cross-encoder with its network and random weights in the head, which is kept below
indexes/models: speed does not depend on the weights. The time is that of the processor, so that one thread can be
measured while other programs run. They still take caches and memory from it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from checkpoints import trunk_folder
from encode import SAMPLE, read_texts
from reporting import INDEXES, table, write_json
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from pyserini_compneg.baselines import PairScorer, pair_scorer
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.encode.models import quiet_transformers
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.options import COUNT


def cross_encoder() -> Path:
    """The folder of the network of all-MiniLM-L6-v2 with one label; it is made if it is not there."""
    folder = INDEXES / "models" / "minilm-l6-cross-encoder"
    if not (folder / "config.json").exists():
        torch.manual_seed(0)
        with quiet_transformers():  # which would report the head that is not there
            model = AutoModelForSequenceClassification.from_pretrained(trunk_folder(), num_labels=1)
        AutoTokenizer.from_pretrained(trunk_folder()).save_pretrained(folder)
        model.save_pretrained(folder)
    return folder


def rates(scorer: PairScorer, queries: Sequence[str], documents: Sequence[str]) -> list[float]:
    """Pairs a second of processor time, for each query."""
    scorer.scores([("warm up", "warm up")])
    taken = []
    for query in queries:
        start = time.process_time()
        scorer.scores([(query, document) for document in documents])
        taken.append(time.process_time() - start)
    return [len(documents) / seconds for seconds in taken]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    chosen = {model: model for model in args.models or ()}
    models = chosen or {"all-MiniLM-L6-v2": str(trunk_folder()), "cross-encoder of its size": str(cross_encoder())}
    documents = read_texts(args.collection, args.documents)
    texts = [record["query"] for _, record in iter_jsonl(SAMPLE.parent / "queries.jsonl")]
    queries = [texts[number] for number in np.linspace(0, len(texts) - 1, args.queries).astype(int)]
    measured = {name: rates(pair_scorer(model), queries, documents) for name, model in models.items()}
    rows = [[name, f"{first:.1f}", f"{np.median(later or first):.1f}"] for name, (first, *later) in measured.items()]
    about = {
        "documents": len(documents),
        "words": round(sum(len(text.split()) for text in documents) / len(documents)),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
    }
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(table(["model", "first query, pairs/s", "later queries, pairs/s"], rows))
    print(write_json("reranking.json", about | {"rates": measured}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, default=SAMPLE, help="documents (default the sample)")
    parser.add_argument("--documents", type=COUNT, default=100)
    parser.add_argument("--queries", type=COUNT, default=6)
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="folders or names on the hub")
    return parser


if __name__ == "__main__":
    sys.exit(main())
