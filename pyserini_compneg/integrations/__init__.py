"""The engine in programs that people already have: a module for each host, which only it needs."""

from __future__ import annotations

import re
from importlib import metadata

from pyserini_compneg.support.errors import install_hint


def require(host: str, floor: str, extra: str | None = None) -> None:
    """Makes sure that a host is recent enough, before its names are imported.

    Args:
        host: The name of its distribution.
        floor: The first version that will do, as ``pyproject.toml`` has it.
        extra: The extra of this package that installs it; by default its own name.

    Raises:
        ImportError: It is missing, or older.
    """
    remedy = install_hint(extra or host)
    try:
        found = metadata.version(host)
    except metadata.PackageNotFoundError:
        raise ImportError(f"{host} is not installed, and {floor} or later is needed: {remedy}") from None
    if _numbers(found) < _numbers(floor):
        raise ImportError(f"{host} {found} is too old, {floor} or later is needed: {remedy}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:2]]
