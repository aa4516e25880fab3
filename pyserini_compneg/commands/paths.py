"""``compneg paths``: prints the paths of the parts of a Java command line."""

from __future__ import annotations

import argparse

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command

_EPILOG = """example:
  JAVA=$(compneg paths java)
  ANSERINI=$(compneg paths anserini)
  PLUGIN=$(compneg paths plugin)
  "$JAVA" -cp "$ANSERINI:$PLUGIN" io.anserini.search.SearchCollection -options
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    from pyserini_compneg.lucene.anserini import anserini_jar
    from pyserini_compneg.lucene.gate import companion_jar
    from pyserini_compneg.lucene.java_home import find_java

    print({"java": lambda: find_java().program, "anserini": anserini_jar, "plugin": companion_jar}[args.part]())


def _parser() -> argparse.ArgumentParser:
    description = "Prints the path of a Java program that runs Anserini, of Anserini's jar, or of this plugin's jar."
    parser = flags.command_parser("paths", "{java,anserini,plugin}", description, _EPILOG)
    parser.add_argument("part", choices=("java", "anserini", "plugin"), help="the part whose path is printed")
    return parser


main = command(_parser, _run)
