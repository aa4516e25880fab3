"""The versions of the installed parts that affect results, read from their files. Does not start Java."""

from __future__ import annotations

import hashlib
import re
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.gate import companion_jar
from pyserini_compneg.lucene.manifest import FORMAT_VERSION
from pyserini_compneg.support.errors import JvmError

_LUCENE = "org/apache/lucene/util/Version.class"


@cache
def build() -> str:
    """Identifies the installed code: a hash of the Python sources and of the companion jar."""
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    content = b"".join(path.read_bytes() for path in [*sources, companion_jar()])
    return hashlib.sha256(content).hexdigest()[:12]


def installed(package: str) -> str:
    """The version of a distribution, or that it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def anserini_version() -> str:
    """The version in the name of Anserini's jar."""
    return anserini_jar().name.removeprefix("anserini-").removesuffix("-fatjar.jar")


def lucene_version() -> str:
    """The version of the Lucene inside Anserini's jar."""
    jar = anserini_jar()
    try:
        with zipfile.ZipFile(jar) as archive:
            constants = re.findall(rb"LUCENE_(\d+)_(\d+)_(\d+)", archive.read(_LUCENE))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise JvmError(f"cannot be read: {error}", where=jar) from None
    return ".".join(map(str, max(tuple(map(int, constant)) for constant in constants)))


@cache
def describe_build() -> dict[str, str | int]:
    """The facts that a bug report needs: package, build, Anserini, Lucene, and the format of indexes."""
    return {
        "version": installed("pyserini_compneg"),
        "build": build(),
        "anserini": anserini_version(),
        "lucene": lucene_version(),
        "index_format": FORMAT_VERSION,
    }
