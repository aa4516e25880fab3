"""Every operator on every template: the table of the README.

    python benchmarks/operators.py --dataset FOLDER [--split dev] [--index indexes/filmsets-bm25] [--maxpool-weight 1]

FOLDER holds documents.jsonl.gz and dev.jsonl with QUEST's fields. The index (BM25 impacts) is built on the first call.
Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyserini_compneg.compose import Operators
from pyserini_compneg.index import build_index
from pyserini_compneg.reproduce.operators import compare_operators, markdown_table


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--index", type=Path, default=Path("indexes/filmsets-bm25"))
    parser.add_argument("--maxpool-weight", type=float, default=Operators().maxpool_weight, help="share in cpt+maxpool")
    args = parser.parse_args()
    if not args.index.exists():
        build_index(args.dataset / "documents.jsonl.gz", args.index, threads=2)
    settings = Operators(maxpool_weight=args.maxpool_weight)
    print(markdown_table(list(compare_operators(args.index, args.dataset / f"{args.split}.jsonl", settings=settings))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
