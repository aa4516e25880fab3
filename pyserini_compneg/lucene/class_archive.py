"""An archive of the Java classes that a search needs. Java maps it into memory instead of reading and checking them.

The first search notes its classes. When its process has ended, another one makes the archive, in the user's cache
folder. Java refuses an archive that does not fit its build or the jars, and goes on without. It does not notice damage,
so the archive's size and time are kept beside it. Where nothing can be kept, nothing is said.

Set ``COMPNEG_CLASS_ARCHIVE=off`` to use and make none.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyserini_compneg.lucene.java_home import JavaRuntime
from pyserini_compneg.support.files import cache_home, content_digest

_KEPT = 4
"""An archive takes 30 MB. Each Java with its jars has one."""

_CLAIM_SECONDS = 86_400
"""Nobody tries again so long after an archive was begun: a Java that cannot make one would try after each search."""

_LAST_CLASS = b"io/compneg/search/Explainer"
"""Without this class, a search has found nothing or was interrupted. Then the next one may make the archive."""

_OWN = re.compile(r"[0-9a-f]{16}(\.\d+)?\.(jsa|state|claim|classes|new)")
_LONGEST_SECONDS = 300
_MAKE = "import sys; sys.path[:0] = sys.argv[1:2]; from pyserini_compneg.lucene import class_archive as it; it.make()"


def archive_options(java: JavaRuntime, classpath: Sequence[str], makes: Sequence[str] | None) -> list[str]:
    """The options for Java to use the archive.

    Without an archive, if ``makes`` has Java's options for modules, they are the options to note the classes, and the
    archive is made when this process has ended.
    """
    if os.environ.get("COMPNEG_CLASS_ARCHIVE") == "off":
        return []
    with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        states = [(name, _state(Path(name))) for name in (str(java.library), *classpath)]
        states.append(("user", str(os.getuid() if hasattr(os, "getuid") else "")))
        archive = cache_home() / "java" / f"{content_digest(repr(states), digits=16)}.jsa"
        if {os.pathsep, "%"} & set(str(archive)):  # Java reads more than one path, or another one
            return []
        if _is_whole(archive):
            return [f"-XX:SharedArchiveFile={archive}"]
        if makes is not None and _claim(archive):
            classes = archive.with_suffix(f".{os.getpid()}.classes")
            atexit.register(_make_later, java, archive, classes, classpath, makes)
            return [f"-XX:DumpLoadedClassList={classes}"]
    return []


def _state(file: Path) -> str:
    status = file.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _is_whole(archive: Path) -> bool:
    try:
        own = not hasattr(os, "getuid") or archive.stat().st_uid == os.getuid()  # it is code
        return own and archive.with_suffix(".state").read_text(encoding="ascii") == _state(archive)
    except (FileNotFoundError, ValueError):
        return False


def _claim(archive: Path) -> bool:
    """Whether this process is the one to make the archive."""
    claim = archive.with_suffix(".claim")
    archive.parent.mkdir(parents=True, exist_ok=True)
    if claim.exists() and time.time() - claim.stat().st_mtime > _CLAIM_SECONDS:
        claim.unlink()
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _make_later(
    java: JavaRuntime, archive: Path, classes: Path, classpath: Sequence[str], modules: Sequence[str]
) -> None:
    """Starts the process that makes the archive; it waits for the end of this one, which closes the pipe."""
    files = map(str, (Path(__file__).parents[2], java.program, archive, classes))
    command = [sys.executable, "-I", "-c", _MAKE, *files, os.pathsep.join(classpath), *modules]
    nowhere = subprocess.DEVNULL
    with suppress(OSError):
        waits, _ = os.pipe()
        process = subprocess.Popen(command, stdin=waits, stdout=nowhere, stderr=nowhere, start_new_session=True)
        process.returncode = 0  # nobody waits for it, and Python is not to warn of that


def make() -> None:
    """Makes an archive, in a process of its own: ``PACKAGE JAVA ARCHIVE CLASSES CLASSPATH [OPTION...]``."""
    java, archive, classes, classpath, *modules = sys.argv[2:]
    sys.stdin.read()
    if hasattr(os, "nice"):
        os.nice(19)
    target = Path(archive)
    made = target.with_suffix(f".{os.getpid()}.new")
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    options = [f"-XX:SharedArchiveFile={made}", *modules, "-cp", classpath]
    try:
        if not os.path.exists(classes) or _LAST_CLASS not in Path(classes).read_bytes():
            target.with_suffix(".claim").unlink()
            return
        for step in (
            ["-Xshare:dump", f"-XX:SharedClassListFile={classes}", *options],
            ["-Xshare:on", "-XX:+VerifySharedSpaces", *options, "-version"],
        ):
            subprocess.run([java, *step], env=environment, timeout=_LONGEST_SECONDS, check=True)
        with made.open("rb") as data:
            os.fsync(data.fileno())
        target.with_suffix(".state").write_text(_state(made), encoding="ascii")
        made.replace(target)
        target.with_suffix(".claim").unlink()
    finally:
        made.unlink(missing_ok=True)
        Path(classes).unlink(missing_ok=True)
        _remove_old(target.parent)


def _remove_old(folder: Path) -> None:
    """Removes all but the newest archives, and what killed processes left."""
    files = [file for file in folder.iterdir() if _OWN.fullmatch(file.name)]
    newest = sorted((file for file in files if file.suffix == ".jsa"), key=lambda file: -file.stat().st_mtime)
    kept = {archive.stem for archive in newest[:_KEPT]}
    for file in files:
        left = time.time() - file.stat().st_mtime > _CLAIM_SECONDS
        if file.stem not in kept and (left or file.suffix in (".jsa", ".state")):
            file.unlink(missing_ok=True)
