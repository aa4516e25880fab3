"""The one progress bar."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def progress(iterable: Iterable[Any] | None, total: int | None, unit: str, description: str) -> Any:
    """A tqdm bar on standard error, silent when that is no terminal.

    Args:
        iterable: What to go through; ``None`` for a bar that is moved by its ``update(n)``.
        total: The number of items, ``None`` when it is not known.
        unit: What one item is, for example ``" docs"``; ``"B"`` is scaled to larger ones.
        description: The text before the bar.

    Returns:
        The bar: an iterable of the items, and a context manager that closes itself.
    """
    from tqdm import tqdm  # a command that shows no bar does not pay for the import

    return tqdm(
        iterable, total=total, unit=unit, desc=description, disable=None, dynamic_ncols=True, unit_scale=unit == "B"
    )
