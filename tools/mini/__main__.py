"""Trains mini, the small model that comes with the package.

    python tools/mini --data DATASETS --summaries FILE --base SPLADE_TINY --teacher ALL_MINILM --output models/mini

DATASETS has ``filmsets``, ``quest-evidence`` and ``pairs/train.jsonl.gz``. A training that was killed goes on
when the command is given again. README.md has what it learns, and why.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from mini_training import Settings, train_mini

from pyserini_compneg.commands.running import command
from pyserini_compneg.support.errors import OutputError

_SETTINGS = "settings.json"


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    settings = Settings(args.base, args.teacher, args.data, args.summaries, steps=args.steps)
    output = Path(args.output)
    if output.exists():
        raise OutputError(f"{output}: exists already; choose another --output")
    unfinished = output.with_name(f"{output.name}.training")
    said = json.dumps(asdict(settings))
    if not unfinished.exists():
        unfinished.mkdir(parents=True)
        (unfinished / _SETTINGS).write_text(said, encoding="utf-8")
    elif (unfinished / _SETTINGS).read_text(encoding="utf-8") != said:
        raise OutputError(f"{unfinished}: was started with other settings; restore them, or remove it")
    train_mini(settings, unfinished).rename(output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python tools/mini", description="Trains the small model of the package.")
    for name, text in (
        ("data", "the folder of filmsets, quest-evidence and pairs"),
        ("summaries", "summaries of Wikipedia's articles, as JSON"),
        ("base", "the sparse model to start from: a folder, or a name on the hub"),
        ("teacher", "a bi-encoder of sentence-transformers"),
        ("output", "the folder of the model"),
    ):
        parser.add_argument(f"--{name}", required=True, metavar="PATH", help=text)
    parser.add_argument("--steps", type=int, default=Settings.steps, metavar="N", help="default: %(default)s")
    return parser


if __name__ == "__main__":
    raise SystemExit(command(_parser, _run)())
