"""``python -m pyserini_compneg.datasets``: converts official files for Anserini and this package."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command, say
from pyserini_compneg.lab.experiments.datasets.conversion import DOCUMENTS, EXPRESSIONS, PLAIN, QRELS, TEXTS, convert
from pyserini_compneg.lab.experiments.datasets.opening import KINDS, open_dataset

_EPILOG = f"""The folder is written atomically. It holds:
  {DOCUMENTS:28}documents for Anserini: -collection JsonCollection -input OUT/collection
  {f"{EXPRESSIONS} or {TEXTS}":28}expressions if the dataset has them, else texts, for --topics
  {PLAIN:28}texts for Anserini: -topicReader TsvString
  {QRELS:28}judgements in TREC's format, including judgements of 0

examples:
  python -m pyserini_compneg.datasets convert --dataset pyserini_compneg/resources/sample --split queries \\
      --output sample
  python -m pyserini_compneg.index --collection sample/collection --index indexes/converted
  python -m pyserini_compneg.search --index indexes/converted --topics sample/{EXPRESSIONS} --output run.txt
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    documents, queries, judgements = convert(open_dataset(args.dataset, args.kind), args.split, args.output)
    say(f"{args.output}: {documents} documents, {queries} queries, {judgements} judgements")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "datasets",
        "convert --dataset DIR --split NAME --output OUT",
        "Converts a split of a dataset from its official files to a collection, topics and qrels.",
        _EPILOG,
    )
    parser.add_argument("action", choices=("convert",), metavar="convert", help="the action")
    parser.add_argument("--dataset", type=Path, required=True, metavar="DIR", help="the folder of the official files")
    text = "for example dev; the error about an unknown split lists all splits"
    parser.add_argument("--split", required=True, metavar="NAME", help=text)
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="the folder to create")
    flags.advanced(parser).add_argument("--kind", choices=KINDS, help="the format of the files (default: recognised)")
    return parser


main = command(_parser, _run)
