"""``python -m pyserini_compneg.datasets``: official files in, files for Anserini and this package out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.commands.flags import advanced, command_parser
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.datasets.conversion import DOCUMENTS, EXPRESSIONS, PLAIN, QRELS, TEXTS, convert
from pyserini_compneg.datasets.opening import KINDS, open_dataset

_EPILOG = f"""The folder appears complete or not at all. It holds:
  {DOCUMENTS:28}documents for Anserini: -collection JsonCollection -input OUT/collection
  {f"{EXPRESSIONS} or {TEXTS}":28}expressions if the dataset has them, else texts, for --topics
  {PLAIN:28}texts for Anserini: -topicReader TsvString
  {QRELS:28}judgements in TREC's format, those of 0 included

example:
  python -m pyserini_compneg.datasets convert --dataset data/nevir --split dev --output nevir-dev
  python -m pyserini_compneg.index --collection nevir-dev/collection --index indexes/nevir-dev
  python -m pyserini_compneg.search --index indexes/nevir-dev --topics nevir-dev/{TEXTS} --output runs/nevir-dev.txt
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
    parser = command_parser(
        "datasets",
        "convert --dataset DIR --split NAME --output OUT",
        "Converts a split of a dataset from its official files to a collection, topics and qrels.",
        _EPILOG,
    )
    parser.add_argument("action", choices=("convert",), metavar="convert", help="what to do")
    parser.add_argument("--dataset", type=Path, required=True, metavar="DIR", help="the folder of the official files")
    text = "for example dev; the error about an unknown split lists all splits"
    parser.add_argument("--split", required=True, metavar="NAME", help=text)
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="the folder to make")
    advanced(parser).add_argument("--kind", choices=KINDS, help="the format of the files (default: recognised)")
    return parser
