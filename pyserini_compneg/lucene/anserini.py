"""Finds Anserini's jar: in ``ANSERINI_CLASSPATH``, in an installed Pyserini, or in the cache.

Pyserini contains the jar. It is no dependency of this package, because pip would install torch and 1.2 GB
more with it. So the first use of Java downloads Pyserini alone, by pip or uv, which know the user's index of packages,
proxy and certificates.
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
from pyserini_compneg.support.files import cache_home
from pyserini_compneg.support.staging import output_errors

PYSERINI, LUCENE = ("1.6.0", "9.9") if sys.version_info < (3, 12) else ("2.4.0", "10.5")
"""The Pyserini whose jar is downloaded, as in constraints.txt, and the Lucene in it."""

_REMEDY = "pip install --no-deps pyserini, or set ANSERINI_CLASSPATH to the folder of the jar of another one"
_logger = logging.getLogger(__name__)


def anserini_jar(download: bool = True) -> Path:
    """Anserini's jar, downloaded if there is none. Never imports Pyserini."""
    if (folder := os.environ.get("ANSERINI_CLASSPATH")) is not None:
        return _jar_in(Path(folder))
    spec = importlib.util.find_spec("pyserini")
    if spec is not None and spec.submodule_search_locations:
        return _jar_in(Path(spec.submodule_search_locations[0]) / "resources" / "jars")
    kept = cache_home() / f"pyserini-{PYSERINI}"
    if not kept.exists():
        if not download:
            raise JvmError(f"the first search downloads the jar of Pyserini {PYSERINI}, with Lucene {LUCENE}")
        _download(kept)
    return _jar_in(kept)


def _jar_in(folder: Path) -> Path:
    jars = sorted(folder.glob("anserini-*-fatjar.jar"), key=lambda jar: jar.stat().st_mtime)
    if not jars:
        remedy = "reinstall pyserini, or set ANSERINI_CLASSPATH to its folder"
        raise JvmError(f"{folder} holds no anserini-*-fatjar.jar: {remedy}")
    return jars[-1]


def _download(target: Path) -> None:
    """Installs Pyserini into a temporary folder, and keeps its jar and its licence."""
    installer = _installer()
    _logger.info("Pyserini is not installed: downloading Anserini's jar (up to 170 MB) to %s", target)
    with output_errors(target, "name another place in COMPNEG_CACHE"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pyserini-") as unpacked:
            command = [*installer, "--quiet", "--no-deps", "--target", unpacked, f"pyserini=={PYSERINI}"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
                raise JvmError(f"Anserini's jar cannot be downloaded: {reason}", remedy=_REMEDY)
            jars = Path(unpacked) / "pyserini" / "resources" / "jars"
            for licence in Path(unpacked).glob("*.dist-info/**/LICENSE*"):
                shutil.copy(licence, jars)
            if not target.exists():  # another process may have been faster
                jars.rename(target)


def _installer() -> list[str]:
    """The beginning of the command that installs packages. Environments that uv makes have no pip."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check"]
    if uv := os.environ.get("UV") or shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise JvmError("Anserini's jar is not installed, and there is neither pip nor uv to download it", remedy=_REMEDY)
