"""Shared code of the modules for hosts: versions of hosts."""

from __future__ import annotations

import re
from importlib import metadata

from pyserini_compneg.support.errors import install_hint


def require(host: str, floor: str, extra: str | None = None) -> None:
    """Raises ``ImportError`` if the distribution of a host is missing or older than ``floor``.

    ``extra`` is the extra of this package that installs the host; the default is the name of the host.
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
