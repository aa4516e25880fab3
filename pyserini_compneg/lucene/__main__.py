"""``python -m pyserini_compneg.lucene``: prints where the parts of a Java command line are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import run_main

_EXAMPLE = """example:
  JAVA=$(python -m pyserini_compneg.lucene java)
  ANSERINI=$(python -m pyserini_compneg.lucene anserini)
  PLUGIN=$(python -m pyserini_compneg.lucene plugin)
  "$JAVA" -cp "$ANSERINI:$PLUGIN" io.anserini.search.SearchCollection -options
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.lucene",
        description="Prints the path of a Java that runs Anserini, of Anserini's jar, or of this plugin's.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", choices=("java", "anserini", "plugin"))
    part = parser.parse_args(argv).part
    from pyserini_compneg.lucene.gate import anserini_jar, companion_jar
    from pyserini_compneg.lucene.java_home import find_java

    print({"java": lambda: find_java().program, "anserini": anserini_jar, "plugin": companion_jar}[part]())


if __name__ == "__main__":
    sys.exit(main())
