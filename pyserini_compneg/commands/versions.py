"""``--version`` of every command: the installed parts that would be used. Does not start Java."""

from __future__ import annotations

import argparse
import platform
from typing import Any

from pyserini_compneg.support.errors import JvmError


class ShowVersions(argparse.Action):
    """The action of ``--version``: prints a line for each part, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(versions(), end="")
        parser.exit()


def versions() -> str:
    """The versions of this package, Pyserini, Anserini with its Lucene, and Java, one on each line."""
    from pyserini_compneg.lucene.manifest import FORMAT_VERSION  # every command imports this module
    from pyserini_compneg.lucene.versions import build, installed

    ours = f"pyserini_compneg {installed('pyserini_compneg')} (build {build()}, index format {FORMAT_VERSION})"
    lines = [f"{ours}, Python {platform.python_version()}", f"Pyserini {installed('pyserini')}", _anserini(), _java()]
    return "".join(f"{line}\n" for line in lines)


def _anserini() -> str:
    from pyserini_compneg.lucene.anserini import anserini_jar
    from pyserini_compneg.lucene.versions import anserini_version, lucene_version

    try:
        jar = anserini_jar(download=False)
        return f"Anserini {anserini_version()}, Lucene {lucene_version()} ({jar})"
    except JvmError as error:
        return f"Anserini: {error}"


def _java() -> str:
    from pyserini_compneg.lucene.java_home import find_java

    try:
        java = find_java()
    except JvmError as error:
        return f"Java: {error}"
    return f"Java {java.major} ({java.home})"
