"""``compneg datasets``: converts official files for Anserini and this package, makes Likings, and lists atoms."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command, say
from pyserini_compneg.lab.experiments.datasets.conversion import DOCUMENTS, EXPRESSIONS, PLAIN, QRELS, TEXTS, convert
from pyserini_compneg.lab.experiments.datasets.likings import LikingsSettings, write_likings
from pyserini_compneg.lab.experiments.datasets.opening import KINDS, open_dataset
from pyserini_compneg.support.options import add_flags, given_options

_LIKINGS, _ATOMS, _OF_CONVERT = "likings", "atoms", ("dataset", "split")

_EPILOG = f"""The folder is written atomically. convert writes a split of --dataset:
  {DOCUMENTS:28}documents for Anserini: -collection JsonCollection -input OUT/collection
  {f"{EXPRESSIONS} or {TEXTS}":28}expressions if the dataset has them, else texts, for --topics
  {PLAIN:28}texts for Anserini: -topicReader TsvString
  {QRELS:28}judgements in TREC's format, including judgements of 0

likings writes Likings, a synthetic dataset for `reproduce likings`: documents that list what a
person likes, and queries with AND, OR and NOT. Equal options make equal files.

atoms writes the relevant documents of each atom of the queries in --topics, a file in QUEST's form, as
lines of JSON for `atoms` of `train`, and prints how many queries of each template get compositional
negatives by them.

examples:
  compneg datasets convert --dataset pyserini_compneg/resources/sample --split queries \\
      --output sample
  compneg index --collection sample/collection --index indexes/converted
  compneg search --index indexes/converted --topics sample/{EXPRESSIONS} --output run.txt
  compneg datasets likings --documents 5000 --output data/likings
  compneg datasets atoms --topics data/quest/train.jsonl --output data/atoms.jsonl
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.action == _LIKINGS:
        _make_likings(args, parser)
        return
    if given := given_options(LikingsSettings, args):
        parser.error(f"--{next(iter(given))} belongs to the action {_LIKINGS}")
    if (args.action == _ATOMS) != (args.topics is not None):
        parser.error(f"the action {_ATOMS} needs --topics, and no other action takes it")
    if args.action == _ATOMS:
        _list_atoms(args, parser)
        return
    if missing := [f"--{name}" for name in _OF_CONVERT if getattr(args, name) is None]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    documents, queries, judgements = convert(open_dataset(args.dataset, args.kind), args.split, args.output)
    say(f"{args.output}: {documents} documents, {queries} queries, {judgements} judgements")


def _list_atoms(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from pyserini_compneg.lab.training.examples import write_atoms

    _refuse(args, parser, *_OF_CONVERT, "kind")
    say(f"{args.output}: {write_atoms(args.topics, args.output)}")


def _refuse(args: argparse.Namespace, parser: argparse.ArgumentParser, *names: str) -> None:
    if given := [f"--{name}" for name in names if getattr(args, name) is not None]:
        parser.error(f"{given[0]} belongs to the action {_ATOMS if given[0] == '--topics' else 'convert'}")


def _make_likings(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    _refuse(args, parser, *_OF_CONVERT, "kind", "topics")
    settings = LikingsSettings(**given_options(LikingsSettings, args))
    say(f"{args.output}: {settings.documents} documents, {write_likings(settings, args.output)} queries")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "datasets",
        "(convert --dataset DIR --split NAME | likings | atoms --topics FILE) --output OUT",
        "Converts a split of a dataset from its official files to a collection, topics and qrels; makes Likings, "
        "a synthetic dataset; or lists the documents of atoms.",
        _EPILOG,
    )
    actions = ("convert", _LIKINGS, _ATOMS)
    parser.add_argument("action", choices=actions, metavar="ACTION", help="convert, likings or atoms")
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="convert: the folder of the official files")
    text = "convert: for example dev; the error about an unknown split lists all splits"
    parser.add_argument("--split", metavar="NAME", help=text)
    parser.add_argument("--topics", type=Path, metavar="FILE", help="atoms: the file of the queries")
    text = "the folder to create; atoms: the file to write"
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help=text)
    add_flags(parser, LikingsSettings)
    flags.advanced(parser).add_argument("--kind", choices=KINDS, help="the format of the files (default: recognised)")
    return parser


main = command(_parser, _run)
