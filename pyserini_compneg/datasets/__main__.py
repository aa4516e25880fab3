"""``python -m pyserini_compneg.datasets``: official files in, files for Anserini and this package out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.cli import run_main
from pyserini_compneg.datasets.conversion import DOCUMENTS, EXPRESSIONS, PLAIN, QRELS, TEXTS, convert
from pyserini_compneg.datasets.opening import KINDS, open_dataset

_EPILOG = f"""example:
  python -m pyserini_compneg.datasets convert --dataset data/nevir --split dev --output nevir-dev
  python -m pyserini_compneg.index --collection nevir-dev/collection --index indexes/nevir-dev
  python -m pyserini_compneg.search --index indexes/nevir-dev --topics nevir-dev/{TEXTS} --output runs/nevir-dev.txt

The folder appears complete or not at all. It holds:
  {DOCUMENTS:28}for Anserini: -collection JsonCollection -input OUT/collection
  {f"{EXPRESSIONS} or {TEXTS}":28}expressions where there are, else texts, for --topics
  {PLAIN:28}the texts, for Anserini: -topicReader TsvString
  {QRELS:28}TREC's, with the judgements of 0
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    converted = convert(open_dataset(args.dataset, args.kind), args.split, args.output)
    print(
        f"{args.output}: {converted.documents} documents, {converted.queries} queries, "
        f"{converted.judgements} judgements",
        file=sys.stderr,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.datasets", description="Reads the official files of datasets."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    conversion = commands.add_parser(
        "convert",
        help="write a split as a collection, topics and qrels",
        description="Writes a split of a dataset as a collection, topics and qrels.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    conversion.add_argument(
        "--dataset", type=Path, required=True, metavar="DIR", help="the folder of the official files"
    )
    conversion.add_argument("--split", required=True, help="such as dev; an unknown one is answered with all there are")
    conversion.add_argument("--output", type=Path, required=True, metavar="OUT", help="the folder to make")
    conversion.add_argument("--kind", choices=KINDS, help="what the files are; recognised where it is not given")
    return parser


if __name__ == "__main__":
    sys.exit(main())
