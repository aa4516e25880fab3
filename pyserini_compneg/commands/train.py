"""``compneg train``: trains a sparse encoder."""

from __future__ import annotations

import argparse
import os

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.terminal import printable

_EPILOG = """\
CONFIG is a YAML file, or the name of a recipe that comes with the package. Checkpoints are kept in OUTPUT.training
until the model is done. docs/how-to/training.md explains the settings.

examples:
  compneg train table5-sum --show
  compneg train table5-sum --data DATASETS --base naver/splade-v3 --output models/nevir
  compneg train reader --data data/requests --output models/reader
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    from pyserini_compneg.lab.training import train
    from pyserini_compneg.lab.training.config import located, read_config, recipe_text

    config = read_config(args.config)
    if args.show:
        print("\n".join(map(printable, recipe_text(args.config).split("\n"))), end="")
        return
    if args.data is not None and not os.path.isdir(args.data):
        raise InputError(f"{args.data}: no such folder of datasets; name one with --data")
    config = located(config, args.data, args.base, args.teacher)
    results = train(config, args.output, flags.chosen_existing(args))
    for name, value in results.items():
        print(f"{name}\t{value:.4f}")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "train",
        "CONFIG (--output FOLDER | --show)",
        "Fine-tunes a masked language model into a sparse encoder, or a BERT into a reader of plain texts.",
        _EPILOG,
    )
    parser.add_argument("config", metavar="CONFIG", help="a YAML file, or the name of a recipe")
    text = "the folder that contains the datasets that CONFIG names by relative paths"
    parser.add_argument("--data", metavar="FOLDER", help=text)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--output", metavar="FOLDER", help="the folder of the trained model")
    action.add_argument("--show", action="store_true", help="print CONFIG, for a copy of your own, and train nothing")
    parser.add_argument("--resume", action="store_true", help="continue a training that was killed")
    group = flags.advanced(parser)
    group.add_argument("--base", metavar="MODEL", help="start from this checkpoint instead of the one in CONFIG")
    group.add_argument("--teacher", metavar="MODEL", help="learn from this model instead of the teacher in CONFIG")
    group.add_argument("--overwrite", action="store_true", help="replace the folder of an earlier model")
    return parser


main = command(_parser, _run)
