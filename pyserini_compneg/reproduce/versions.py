"""The versions of what results may depend on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyserini_compneg.lucene import java_class

_PACKAGE = Path(__file__).parents[1]
_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")


def versions() -> dict[str, str]:
    """The versions of Python, Java and Lucene, and of the packages that are installed."""
    found = {
        "Python": platform.python_version(),
        "Java": str(java_class("java.lang.System").getProperty("java.version")),
        "Lucene": str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_fingerprint() -> str:
    """A hash of this package's code, Python and Java: what it computes may change with any line."""
    digest = hashlib.sha256()
    for path in sorted((*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.jar"), *_PACKAGE.rglob("*.toml"))):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
