"""The versions of the installed parts that affect results, read from files, and of the Lucene that wrote an index."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.gate import companion_jar, java_class
from pyserini_compneg.lucene.manifest import FORMAT_VERSION
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError, JvmError
from pyserini_compneg.support.files import content_digest

_HEAD = re.compile(
    rb"\x3f\xd7\x6c\x17\x08segments.{20}(?:\x01.|\x02..|\x03...|\x04....)([\x07-\x7f][\0-\x7f]{2})", re.DOTALL
)
"""The head of a segments file: a magic number, a name, the version of the format, an id, a suffix, then a version."""

_LINES = {
    9: "Pyserini 1, which has Lucene 9 (Python 3.11)",
    10: "Pyserini 2, which has Lucene 10 (Python 3.12 or later)",
}

_LUCENE = "org/apache/lucene/util/Version.class"


@cache
def build() -> str:
    """Identifies the installed code: a hash of the Python sources and of the companion jar."""
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    return content_digest(*sources, companion_jar(), digits=12)


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


def written_by(commit: Path) -> tuple[int, ...]:
    """The version of the Lucene that wrote a commit of an index, from the head of its segments file."""
    with commit.open("rb") as file:
        head = _HEAD.match(file.read(256))
    if head is None:
        raise IndexReadError("is no segments file of Lucene", where=commit, remedy="rebuild the index")
    return tuple(head[1])


@contextmanager
def line_errors(commit: Path) -> Iterator[None]:
    """Names the Pyserini that can read an index, if it cannot be read because of the Lucene that wrote it."""
    try:
        yield
    except IndexReadError as error:
        try:
            written, ours = written_by(commit), running_lucene()
        except (OSError, IndexReadError):
            raise error from None
        if ours[0] - 1 <= written[0] and written <= ours:
            raise
        said = f"Lucene {dotted(written)} wrote it, which Lucene {dotted(ours)} cannot read"
        remedy = f"open it with {_LINES.get(written[0], 'another Pyserini')}, or build it again"
        raise IndexFormatError(said, where=error.where, remedy=remedy) from None


def check_upgrade(commit: Path, place: str, allowed: bool) -> None:
    """Refuses an update that would take an index from the line of Lucene that wrote it, unless this is allowed."""
    written, ours = written_by(commit), running_lucene()
    if written[0] < ours[0] and not allowed:
        before = f"Lucene {written[0]}"
        said = f"{before} wrote it, and could not read it any more after an update by Lucene {ours[0]}"
        remedy = f"update it with {_LINES.get(written[0], before)}, or allow this by --upgrade"
        raise IndexFormatError(said, where=place, remedy=remedy)


def running_lucene() -> tuple[int, ...]:
    """The version of the Lucene in the Java machine."""
    latest = java_class("org.apache.lucene.util.Version").LATEST
    return int(latest.major), int(latest.minor), int(latest.bugfix)


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


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
