"""The interface of document encoders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol


class DocumentEncoder(Protocol):
    """Makes vectors of documents' texts.

    Attributes:
        impact_scale: Impact = round(weight * impact_scale), unless the user says otherwise.
        settings: What the vectors depend on, for the index's manifest.
        signed: Whether weights may be negative.
        most_lines: The number of documents that are best encoded together; None for all that are read together.
    """

    impact_scale: float
    settings: Mapping[str, float | int | str]
    signed: bool
    most_lines: int | None

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        """The vectors of batches of texts, in their order."""
