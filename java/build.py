"""Builds ``pyserini_compneg/resources/compneg.jar`` from the sources beside this file.

    python java/build.py [--check]

It needs a JDK, 21 or later, and the Anserini fatjar of the installed Pyserini. Neither pip nor a user ever runs it. The
classes of ``src`` are the same against every Anserini that the package supports. Those of ``lucene9`` and ``lucene10``
compile against their own Lucene only, so a build keeps the other line's classes as the jar has them, and a check looks
whether they are there. After a change to both, build on both lines. The jar is reproducible: its bytes depend on the
sources and on the release of ``javac`` alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.gate import companion_jar
from pyserini_compneg.lucene.java_home import MINIMUM_MAJOR, candidates
from pyserini_compneg.support.errors import CompNegError

JAVA = Path(__file__).resolve().parent
COMMON = "src"
VARIANTS = {9: "lucene9", 10: "lucene10"}
LUCENE_VERSION = "org/apache/lucene/util/Version.class"
MANIFEST = "META-INF/MANIFEST.MF"

JAVAC_OPTIONS = (
    "--release", str(MINIMUM_MAJOR),
    "-encoding", "UTF-8",
    "-g:source,lines",
    # The fatjar names annotation classes and jars that it does not hold, and brings annotation processors along.
    "-proc:none", "-Xlint:all,-classfile,-path,-processing", "-Werror",
)  # fmt: skip


class BuildError(CompNegError):
    """What stops the build, in one line."""


def find_javac() -> tuple[Path, int]:
    """Returns the first compiler that is recent enough, and its release.

    Raises:
        BuildError: There is none.
    """
    for runtime in candidates():
        javac = runtime.program.with_name(runtime.program.name.replace("java", "javac"))
        if runtime.major >= MINIMUM_MAJOR and javac.is_file():
            return javac, runtime.major
    raise BuildError(f"needs javac {MINIMUM_MAJOR} or later: install a JDK, or point JAVA_HOME at one")


def lucene_major(classpath: Path) -> int:
    """Returns the release line of the Lucene in a fatjar: its class of versions has a constant for each.

    Raises:
        BuildError: No Lucene, or one that there is no variant for.
    """
    try:
        with zipfile.ZipFile(classpath) as archive:
            constants = re.findall(rb"LUCENE_(\d+)_\d+_\d+", archive.read(LUCENE_VERSION))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BuildError(f"cannot find Lucene's version in {classpath}: {error}") from error
    major = max(map(int, constants), default=0)
    if major not in VARIANTS:
        raise BuildError(f"{classpath} has Lucene {major}, expected one of {', '.join(map(str, VARIANTS))}")
    return major


def sources(folder: str) -> list[str]:
    """Returns the sources under a folder of ``java``, relative to ``java``."""
    return sorted(path.relative_to(JAVA).as_posix() for path in (JAVA / folder).rglob("*.java"))


def compile_classes(classpath: Path, folders: list[str]) -> dict[str, bytes]:
    """Compiles the sources of some folders and returns the jar's entries, name to content.

    Raises:
        BuildError: There is no compiler, no source, or the compiler refused; it has said why on stderr.
    """
    javac, javac_release = find_javac()
    files = [source for folder in folders for source in sources(folder)]
    if not files:
        raise BuildError(f"no Java source under {JAVA}")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(javac), *JAVAC_OPTIONS, "-cp", str(classpath.resolve()), "-d", folder, *files]
        if subprocess.run(command, cwd=JAVA, stdout=sys.stderr, check=False).returncode:
            raise BuildError(f"{javac} refused the sources (classpath {classpath})")
        classes = {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*.class")}
    manifest = f"Manifest-Version: 1.0\r\nCreated-By: javac {javac_release}\r\n\r\n"
    return {MANIFEST: manifest.encode(), **classes}


def other_classes(folders: list[str], jar: Path) -> dict[str, bytes]:
    """Returns the entries of the jar that come from sources which this line cannot compile; none without a jar."""
    entries = read_jar(jar) if jar.exists() else {}
    names = "|".join(re.escape(name) for folder in folders for name in class_names(folder))
    return {name: data for name, data in entries.items() if re.fullmatch(rf"({names})(\$.+)?\.class", name)}


def class_names(folder: str) -> list[str]:
    """Returns the classes of a folder's sources, as paths without the suffix."""
    return [Path(source).relative_to(folder).with_suffix("").as_posix() for source in sources(folder)]


def check_complete(entries: dict[str, bytes]) -> None:
    """Makes sure that no line's classes are missing.

    Raises:
        BuildError: Some are: the jar was never built with that line.
    """
    for folder in VARIANTS.values():
        if missing := [name for name in class_names(folder) if f"{name}.class" not in entries]:
            raise BuildError(f"the jar lacks {', '.join(missing)}: run 'make jar' with the Pyserini of {folder} too")


def write_jar(entries: dict[str, bytes], jar: Path) -> None:
    """Writes the entries with nothing of the moment or the machine in them; stored, since compressors differ."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries, key=lambda name: (name != MANIFEST, name)):
            entry = zipfile.ZipInfo(name)  # dated 1980-01-01, the earliest that a zip can hold
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, entries[name])


def read_jar(jar: Path) -> dict[str, bytes]:
    """Returns the entries of a jar, name to content.

    Raises:
        BuildError: It is missing or broken.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile) as error:
        raise BuildError(f"cannot read {jar} ({error}): run 'make jar'") from error


def check(entries: dict[str, bytes], jar: Path) -> None:
    """Makes sure that a jar holds these classes and no others.

    Raises:
        BuildError: It does not; the message names the entries.
    """
    committed = read_jar(jar)
    names = sorted((entries.keys() | committed.keys()) - {MANIFEST})
    differing = [name for name in names if entries.get(name) != committed.get(name)]
    if not differing:
        return
    builders = [
        content.get(MANIFEST, b"").decode().partition("Created-By: ")[2].strip() for content in (committed, entries)
    ]
    hint = "" if builders[0] == builders[1] else f" (it was built with {builders[0]}, this is {builders[1]})"
    raise BuildError(f"{jar.name} does not match its sources in {', '.join(differing)}{hint}: run 'make jar'")


def main() -> int:
    """Builds or checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the jar with the sources, write nothing")
    options = parser.parse_args()
    jar = companion_jar()
    try:
        classpath = anserini_jar()
        major = lucene_major(classpath)
        entries = compile_classes(classpath, [COMMON, VARIANTS[major]])
        entries |= other_classes([folder for line, folder in VARIANTS.items() if line != major], jar)
        if options.check:
            check(entries, jar)
        else:
            write_jar(entries, jar)
        check_complete(entries)
    except CompNegError as error:
        print(f"java/build.py: {error}", file=sys.stderr)
        return 1
    verdict = "matches its sources" if options.check else "written"
    print(f"{jar.name} {verdict}: {len(entries) - 1} classes, {classpath.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
