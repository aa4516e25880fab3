"""The versions of what results may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("pyserini_compneg", "pyserini", "onnxruntime", "torch", "sentence-transformers")


def versions() -> dict[str, str]:
    """Python's version, and those of the packages that are installed.

    >>> list(versions())[:2]
    ['Python', 'pyserini_compneg']
    """
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
