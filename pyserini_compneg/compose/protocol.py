"""What composition needs of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class QueryEncoder(Protocol):
    """Turns texts into sparse vectors."""

    def encode(self, text: str) -> dict[str, float]:
        """The vector of a text."""

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vectors of several texts, in their order; the same as encoding them one by one."""
