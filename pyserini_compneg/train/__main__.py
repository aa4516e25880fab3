"""``python -m pyserini_compneg.train``: trains a sparse encoder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import run_main

_EXAMPLE = """example:
  python -m pyserini_compneg.train table5-sum --data DATASETS --base naver/splade-v3 --output models/nevir
  python -m pyserini_compneg.index --collection documents.jsonl --index indexes/signed --encoder models/nevir

CONFIG is a YAML file, or the name of a recipe that comes with the package. Checkpoints are kept in OUTPUT.training
until the model is done. docs/training.md explains the settings.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    from pyserini_compneg.train import train
    from pyserini_compneg.train.recipe_file import located, named_config, recipe_text

    if args.show:
        print(recipe_text(args.config), end="")
        return
    config = located(named_config(args.config), args.data, args.base)
    results = train(config, args.output, resume=args.resume, overwrite=args.overwrite)
    for name, value in results.items():
        print(f"{name}\t{value:.4f}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.train",
        description="Fine-tunes a masked language model into a sparse encoder, of signed weights if asked.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", metavar="CONFIG", help="a YAML file, or the name of a recipe")
    parser.add_argument("--data", metavar="FOLDER", help="where the datasets are that CONFIG names by relative paths")
    parser.add_argument("--base", metavar="MODEL", help="the checkpoint to start from, instead of CONFIG's")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--output", metavar="FOLDER", help="the folder of the trained model")
    action.add_argument("--show", action="store_true", help="print CONFIG, to be changed, and train nothing")
    parser.add_argument("--resume", action="store_true", help="go on with a training that was killed")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder of a former model")
    return parser


if __name__ == "__main__":
    sys.exit(main())
