"""``compneg generate``: makes training data with a language model."""

from __future__ import annotations

import argparse

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.lab.generation_settings import GenerationSettings
from pyserini_compneg.support.options import add_flags, given_options

_EPILOG = """\
The environment names the model, as for --read llm: OPENAI_BASE_URL, COMPNEG_LLM_MODEL, and OPENAI_API_KEY where the
server wants a key. Each answer is kept in FOLDER/answers.jsonl before the next question. The same command later asks
only what has no answer there; with a larger --limit, it adds to the data.

The folder is a dataset for train, and has requests for train reader:
  documents.jsonl   the collection
  train.jsonl       requests, each with its expression and relevant documents
  atoms.jsonl       atoms, each with its documents
  requests.txt      nine in ten requests, tagged
  judged.jsonl      one in ten requests, as what they ask for
  summary.json      the settings, and the counts that the command prints

example:
  export OPENAI_BASE_URL=http://localhost:8000/v1 COMPNEG_LLM_MODEL=some-model
  compneg generate --collection documents.jsonl.gz --output data/mine --limit 1000
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    from pyserini_compneg.lab.training import generate

    results = generate(args.collection, args.output, GenerationSettings(**given_options(GenerationSettings, args)))
    for name, value in results.items():
        print(f"{name}\t{value if isinstance(value, int) else f'{value:.4f}'}")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "generate",
        "--collection PATH --output FOLDER",
        "Asks a language model for atoms that documents match, and for requests that combine them: training data for "
        "encoders and for readers of plain texts.",
        _EPILOG,
    )
    flags.add_collection(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="the folder of the data")
    add_flags(parser, GenerationSettings)
    text = "fields that make up the text (default contents, or title and text)"
    parser.add_argument("--fields", nargs="+", metavar="NAME", help=text)
    return parser


main = command(_parser, _run)
