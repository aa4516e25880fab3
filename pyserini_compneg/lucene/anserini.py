"""Finds Anserini's jar: in ``ANSERINI_CLASSPATH``, in an installed Pyserini, or in the cache.

Pyserini contains the jar. It is no dependency of this package, because pip would install torch and 1.2 GB more with it.
So the first use of Java downloads Pyserini alone, by pip or uv, which know the user's index of packages, proxy and
certificates. The jar must have the known checksum.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyserini_compneg.support.errors import JvmError
from pyserini_compneg.support.files import cache_home, content_digest
from pyserini_compneg.support.staging import locked, output_errors, staged_folder

PYSERINI, LUCENE, _SHA256 = (
    ("1.6.0", "9.9", "183bf5b53c82441b249d475f66f73aaa3e7dedd8892dece747e3680a1fda34f3")
    if sys.version_info < (3, 12)
    else ("2.4.0", "10.5", "375848a9bb0a7514d2a8fe13df20086961570991bf20343abf0e5312af977def")
)
"""The Pyserini whose jar is downloaded, as in constraints.txt, the Lucene in the jar, and the jar's checksum."""

_JARS = "anserini-*-fatjar.jar"
_BOUND = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Runs a command that Linux kills with its parent, which may get no chance to kill it."""

_REMEDY = "install it (pip install --no-deps pyserini), or name the folder of another jar in ANSERINI_CLASSPATH"
_logger = logging.getLogger(__name__)


def anserini_jar(download: bool = True) -> Path:
    """Anserini's jar, downloaded if there is none. Never imports Pyserini."""
    if folder := os.environ.get("ANSERINI_CLASSPATH"):
        return _jar_in(Path(folder))
    spec = importlib.util.find_spec("pyserini")
    if spec is not None and spec.origin:  # not a folder of the same name
        return _jar_in(Path(spec.origin).parent / "resources" / "jars")
    kept = cache_home() / f"pyserini-{PYSERINI}"
    if not any(kept.glob(_JARS)):
        if not download:
            raise JvmError(f"the first search downloads the jar of Pyserini {PYSERINI}, with Lucene {LUCENE}")
        with output_errors(kept, "name another place in COMPNEG_CACHE"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            with locked(kept, "another process downloads Anserini's jar", waits=True):
                if not any(kept.glob(_JARS)):
                    _download(kept)
    return _jar_in(kept)


def _jar_in(folder: Path) -> Path:
    jars = sorted(folder.glob(_JARS), key=lambda jar: jar.stat().st_mtime)
    if not jars:
        remedy = "reinstall pyserini, or set ANSERINI_CLASSPATH to its folder"
        raise JvmError(f"{folder} holds no {_JARS}: {remedy}")
    return jars[-1]


def _download(target: Path) -> None:
    """Installs Pyserini beside the target, and keeps its jar and its licence."""
    installer = _installer()
    _logger.warning("Pyserini is not installed: downloading Anserini's jar, up to 170 MB, to %s", target)
    with staged_folder(target, replace=True) as folder, tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
        command = [*installer, "--quiet", "--no-deps", "--target", unpacked, f"pyserini=={PYSERINI}"]
        if sys.platform == "linux":
            command = [sys.executable, "-P", "-c", _BOUND, str(os.getpid()), *command]
        others = {f"PIP_{name}" for name in ("PREFIX", "ROOT", "PYTHON", "REQUIREMENT", "EDITABLE")}
        settings = {name: value for name, value in os.environ.items() if name not in others}
        settings |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DRY_RUN": "0", "TMPDIR": str(folder.parent)}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=settings
        )
        jars = [*Path(unpacked).glob(f"pyserini/resources/jars/{_JARS}")]
        if done.returncode or len(jars) != 1:
            reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise JvmError(f"Anserini's jar cannot be downloaded: {reason}", remedy=_REMEDY)
        if (found := content_digest(jars[0])) != _SHA256:
            raise JvmError(f"the downloaded {jars[0].name} has the SHA-256 {found}, expected {_SHA256}", remedy=_REMEDY)
        for kept in (jars[0], *Path(unpacked).glob("*.dist-info/**/LICENSE*")):
            shutil.move(kept, folder)


def _installer() -> list[str]:
    """The beginning of the command that installs packages. Environments that uv makes have no pip."""
    if importlib.util.find_spec("pip"):
        # -P: a folder named pip in the working directory is no program of ours
        return [
            sys.executable,
            "-P",
            "-m",
            "pip",
            "install",
            "--no-input",
            "--no-compile",
            "--disable-pip-version-check",
        ]
    if uv := shutil.which(os.environ.get("UV") or "uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise JvmError(
        "Anserini's jar is not installed, and there is neither pip nor uv to download it",
        remedy="install pyserini, or name the folder of a jar in ANSERINI_CLASSPATH",
    )
