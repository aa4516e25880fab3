"""``python -m pyserini_compneg.lucene``: prints where the parts of a Java command line are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_compneg.commands.flags import command_parser
from pyserini_compneg.commands.running import run_main

_EPILOG = """example:
  JAVA=$(python -m pyserini_compneg.lucene java)
  ANSERINI=$(python -m pyserini_compneg.lucene anserini)
  PLUGIN=$(python -m pyserini_compneg.lucene plugin)
  "$JAVA" -cp "$ANSERINI:$PLUGIN" io.anserini.search.SearchCollection -options
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    part = _parser().parse_args(argv).part
    from pyserini_compneg.lucene.gate import anserini_jar, companion_jar
    from pyserini_compneg.lucene.java_home import find_java

    print({"java": lambda: find_java().program, "anserini": anserini_jar, "plugin": companion_jar}[part]())


def _parser() -> argparse.ArgumentParser:
    description = "Prints the path of a Java program that runs Anserini, of Anserini's jar, or of this plugin's jar."
    parser = command_parser("lucene", "{java,anserini,plugin}", description, _EPILOG)
    parser.add_argument("part", choices=("java", "anserini", "plugin"), help="the part whose path is printed")
    return parser
