"""``--version`` of every command: the installed parts that would be used. Does not start Java."""

from __future__ import annotations

import argparse
import platform
import re
from typing import Any

from pyserini_compneg.support.errors import JvmError

_LUCENE = "org/apache/lucene/util/Version.class"


class ShowVersions(argparse.Action):
    """The action of ``--version``: prints a line for each part, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(versions(), end="")
        parser.exit()


def versions() -> str:
    """The versions of this package, Pyserini, Anserini with its Lucene, and Java, one on each line."""
    lines = [f"pyserini_compneg {_installed('pyserini_compneg')}, Python {platform.python_version()}"]
    lines += [f"Pyserini {_installed('pyserini')}", _anserini(), _java()]
    return "".join(f"{line}\n" for line in lines)


def _installed(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # every command imports this module

    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _anserini() -> str:
    import zipfile

    from pyserini_compneg.lucene.gate import anserini_jar

    try:
        jar = anserini_jar()
        with zipfile.ZipFile(jar) as archive:
            constants = re.findall(rb"LUCENE_(\d+)_(\d+)_(\d+)", archive.read(_LUCENE))
    except (JvmError, OSError, KeyError, zipfile.BadZipFile) as error:
        return f"Anserini: {error}"
    lucene = max(tuple(map(int, constant)) for constant in constants)
    return f"Anserini {jar.name.split('-')[1]}, Lucene {'.'.join(map(str, lucene))} ({jar})"


def _java() -> str:
    from pyserini_compneg.lucene.java_home import find_java

    try:
        java = find_java()
    except JvmError as error:
        return f"Java: {error}"
    return f"Java {java.major} ({java.home})"
