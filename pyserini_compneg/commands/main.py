"""``compneg`` and ``python -m pyserini_compneg``: every command by its name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from pyserini_compneg.support.terminal import shown, suggestion

COMMANDS = {
    "search": "search queries with AND, OR and NOT, and write a TREC run",
    "explain": "show the composed form of a query, and why documents have their ranks",
    "read": "show how plain words are read",
    "compose": "write composed queries to a file",
    "doc": "show stored documents, and their terms and impacts",
    "index": "build an impact index",
    "update": "insert, replace and delete documents of an index",
    "encode": "encode a collection with a model, in shards",
    "eval": "evaluate and compare runs",
    "datasets": "convert the official files of a dataset, or make a synthetic one",
    "reproduce": "make the tables and figures of the papers",
    "generate": "make training data with a language model",
    "train": "train a sparse encoder",
    "export": "export a model to ONNX before it is needed",
    "paths": "print the paths of Java, Anserini and this plugin's jar",
    "serve": "serve indexes to programs, language models, and browsers",
    "demo": "index and search the sample that comes with the package",
}

_FORMER = {"lucene": "paths"}
"""Commands that have another name now. The former name works until the next major release."""

_USAGE = "usage: compneg COMMAND [options] | --version\n\ncommands (each explains itself with -h):\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that the first argument names. Returns its exit code."""
    verb, *arguments = (sys.argv[1:] if argv is None else argv) or ["-h"]
    try:
        if verb in _FORMER:
            print(f"warning: compneg {verb} is now compneg {_FORMER[verb]}", file=sys.stderr)
            verb = _FORMER[verb]
        if verb in COMMANDS:
            code: int = import_module(f"pyserini_compneg.commands.{verb}").main(arguments)
            return code
        from pyserini_compneg.commands.running import run_main

        return run_main(_without_command, [verb, *arguments])
    except KeyboardInterrupt:  # raised before the command handles it
        print("interrupted", file=sys.stderr)
        return 130


def _without_command(argv: Sequence[str] | None) -> int:
    """Handles ``-h`` and ``--version``, and refuses anything else."""
    verb = argv[0] if argv else "-h"
    if verb == "--version":
        from pyserini_compneg.commands.versions import versions

        print(versions(), end="")
    elif verb in ("-h", "--help"):
        listed = "".join(f"  {name:<11}{what}\n" for name, what in COMMANDS.items())
        print(_USAGE + listed, end="")
    else:
        from pyserini_compneg.support.errors import ArgumentError

        said = f"there is no command {shown(verb)}{suggestion(verb, COMMANDS)}"
        raise ArgumentError(said, below="see compneg -h")
    return 0
