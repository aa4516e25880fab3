"""``compneg train``: trains a sparse encoder, a reader or a latent model."""

from __future__ import annotations

import argparse
import os

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.documents.formats import SUFFIXES
from pyserini_compneg.lab.latent_settings import LatentSettings
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.options import add_flags, given_options
from pyserini_compneg.support.terminal import printable

_EPILOG = """\
CONFIG is a YAML file, or the name of a recipe that comes with the package. The word latent in its place trains a
latent model, whose settings are flags. Checkpoints are kept in OUTPUT.training until the model is done.
docs/how-to/training.md explains the settings.

examples:
  compneg train table5-sum --show
  compneg train table5-sum --data DATASETS --base naver/splade-v3 --output models/nevir
  compneg train reader --data data/requests --output models/reader
  compneg train latent --base sentence-transformers/all-MiniLM-L6-v2 --texts documents.jsonl.gz --output models/latent
"""
_LATENT = "latent"


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.config == _LATENT:
        _run_latent(args, parser)
        return
    if given := [*(["texts"] if args.texts else []), *given_options(LatentSettings, args)]:
        flag = given[0].removeprefix("collection_")
        parser.error(f"--{flag} is for a latent model: compneg train latent")
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


def _run_latent(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if given := [name for name in ("show", "data", "teacher") if getattr(args, name)]:
        parser.error(f"--{given[0]} is for a CONFIG, and latent is none")
    for name in ("base", "texts"):
        if not getattr(args, name):
            parser.error(f"latent needs --{name}")
    from pyserini_compneg.lab.training import train_latent

    settings = LatentSettings(**given_options(LatentSettings, args), existing=flags.chosen_existing(args))
    for name, value in train_latent(args.base, args.texts, args.output, settings).items():
        print(f"{name}\t{value}")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "train",
        "CONFIG (--output FOLDER | --show)",
        "Fine-tunes a masked language model into a sparse encoder, or a BERT into a reader of plain texts, or makes "
        "sparse terms of the vectors of a dense model.",
        _EPILOG,
    )
    text = "a YAML file, the name of a recipe, or latent, which needs --base and --texts"
    parser.add_argument("config", metavar="CONFIG", help=text)
    text = "the folder that contains the datasets that CONFIG names by relative paths"
    parser.add_argument("--data", metavar="FOLDER", help=text)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--output", metavar="FOLDER", help="the folder of the trained model")
    action.add_argument("--show", action="store_true", help="print CONFIG, for a copy of your own, and train nothing")
    parser.add_argument("--resume", action="store_true", help="continue a training that was killed")
    group: flags.Flags = parser.add_argument_group("options of latent")
    text = "file or folder of texts, as index takes them; repeat it for more"
    group.add_argument("--texts", metavar="PATH", action="append", help=text)
    add_flags(group, LatentSettings, ("latents", "active", "tokens"))
    text = "fields that make up the text (default contents, or title and text)"
    group.add_argument("--fields", nargs="+", metavar="NAME", help=text)
    text = f"the format of the texts: {', '.join(SUFFIXES)} (default: detected from their names and first bytes)"
    group.add_argument("--format", choices=[*SUFFIXES], dest="collection_format", help=text)
    group = flags.advanced(parser)
    text = "start from this checkpoint instead of the one in CONFIG; for latent, the dense model"
    group.add_argument("--base", metavar="MODEL", help=text)
    group.add_argument("--teacher", metavar="MODEL", help="learn from this model instead of the teacher in CONFIG")
    group.add_argument("--overwrite", action="store_true", help="replace the folder of an earlier model")
    return parser


main = command(_parser, _run)
