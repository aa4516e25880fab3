"""Builds ``pyserini_compneg/resources/compneg.jar`` from ``java/src``.

    python java/build.py [--check] [--classpath JAR]

It needs a JDK (21 or later) and the Anserini fatjar of an installed Pyserini; neither pip nor a user ever runs it. The
classes target Java 21 and are the same against every Anserini that the package supports. The jar is reproducible: its
bytes depend on the sources and on the release of ``javac`` alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

RELEASE = 21
ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "java" / "src"
JAR = ROOT / "pyserini_compneg" / "resources" / "compneg.jar"
MANIFEST = "META-INF/MANIFEST.MF"

JAVAC_OPTIONS = (
    "--release", str(RELEASE),
    "-encoding", "UTF-8",
    "-g:source,lines",
    # The fatjar names annotation classes and jars that it does not hold, and brings annotation processors along.
    "-proc:none", "-Xlint:all,-classfile,-path,-processing", "-Werror",
)  # fmt: skip

JDK_PLACES = (
    ("/usr/lib/jvm", "*"),
    ("/opt", "*jdk*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
    ("~/.sdkman/candidates/java", "*"),
    ("~/.jdks", "*"),
    ("C:/Program Files/Java", "*"),
    ("C:/Program Files/Eclipse Adoptium", "*"),
    ("C:/Program Files/Microsoft", "jdk*"),
)


class BuildError(Exception):
    """What stops the build, in one line."""


def java_homes() -> Iterator[Path]:
    """Folders that may hold a JDK, the user's own choice first."""
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    if on_path := shutil.which("javac"):
        yield Path(on_path).resolve().parents[1]
    for folder, pattern in JDK_PLACES:
        yield from sorted(Path(folder).expanduser().glob(pattern))


def find_javac() -> tuple[Path, int]:
    """Returns the first ``javac`` that knows RELEASE, and its own release.

    Raises:
        BuildError: There is none.
    """
    seen = []
    for home in java_homes():
        javac = home / "bin" / ("javac.exe" if os.name == "nt" else "javac")
        if not javac.is_file():
            continue
        answer = subprocess.run([javac, "--version"], capture_output=True, text=True, check=False)
        match = re.match(r"javac (\d+)", answer.stdout)
        if match and int(match[1]) >= RELEASE:
            return javac, int(match[1])
        seen.append(f"{javac} is {answer.stdout.strip() or 'no javac'}")
    found = "; ".join(dict.fromkeys(seen)) or "none found"
    raise BuildError(f"needs javac {RELEASE} or later ({found}): install a JDK, or point JAVA_HOME at one")


def find_anserini() -> Path:
    """Returns the fatjar of the installed Pyserini, which is looked up and not imported.

    Raises:
        BuildError: Pyserini or its jar is not there.
    """
    spec = importlib.util.find_spec("pyserini")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    jars = [jar for folder in folders for jar in Path(folder).glob("resources/jars/anserini-*-fatjar.jar")]
    if len(jars) != 1:
        raise BuildError(f"found {len(jars)} Anserini fatjars in the installed Pyserini, expected 1: give --classpath")
    return jars[0]


def compile_classes(classpath: Path) -> dict[str, bytes]:
    """Compiles every source and returns the jar's entries, name to content.

    Raises:
        BuildError: There is no compiler, no source, or the compiler refused; it has said why on stderr.
    """
    javac, javac_release = find_javac()
    sources = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.java"))
    if not sources:
        raise BuildError(f"no Java source under {SOURCES}")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(javac), *JAVAC_OPTIONS, "-cp", str(classpath.resolve()), "-d", folder, *sources]
        if subprocess.run(command, cwd=SOURCES, stdout=sys.stderr, check=False).returncode:
            raise BuildError(f"{javac} refused the sources (classpath {classpath})")
        classes = {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*.class")}
    manifest = f"Manifest-Version: 1.0\r\nCreated-By: javac {javac_release}\r\n\r\n"
    return {MANIFEST: manifest.encode(), **dict(sorted(classes.items()))}


def write_jar(entries: dict[str, bytes], jar: Path) -> None:
    """Writes the entries with nothing of the moment or the machine in them; stored, since compressors differ."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name)  # dated 1980-01-01, the earliest that a zip can hold
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)


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
    raise BuildError(f"{jar.name} does not match java/src in {', '.join(differing)}{hint}: run 'make jar'")


def main(argv: list[str] | None = None) -> int:
    """Builds or checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the jar with the sources, write nothing")
    parser.add_argument("--classpath", type=Path, metavar="JAR", help="default: the fatjar of the installed Pyserini")
    options = parser.parse_args(argv)
    try:
        classpath = options.classpath or find_anserini()
        entries = compile_classes(classpath)
        if options.check:
            check(entries, JAR)
        else:
            write_jar(entries, JAR)
    except BuildError as error:
        print(f"java/build.py: {error}", file=sys.stderr)
        return 1
    verdict = "matches java/src" if options.check else "written"
    print(f"{JAR.relative_to(ROOT)} {verdict}: {len(entries) - 1} classes, {classpath.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
