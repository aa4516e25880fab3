"""A document encoder without a model: each word weighs what its length says. And what encoders are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest


class StandInEncoder:
    """Shaped like ``ModelDocumentEncoder``."""

    impact_scale = 51.2
    signed = False
    most_lines = None
    query_tokenizer = None
    concepts = None

    def __init__(self, **settings: float | int | str) -> None:
        self.settings = {"model": "0123456789abcdef", "precision": "fp32", **settings}

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        """As the model's: one batch is asked for ahead."""
        waiting: list[Sequence[str]] = []
        for texts in batches:
            waiting.append(texts)
            if len(waiting) > 1:
                yield [vector(text) for text in waiting.pop(0)]
        for texts in waiting:
            yield [vector(text) for text in texts]


def taken_texts(monkeypatch: pytest.MonkeyPatch, encoder: type) -> list[str]:
    """The texts that encoders of a class take from now on."""
    texts: list[str] = []
    stream = encoder.stream

    def listens(self, batches):
        def heard():
            for batch in batches:
                texts.extend(batch)
                yield batch

        return stream(self, heard())

    monkeypatch.setattr(encoder, "stream", listens)
    return texts


def vector(text: str) -> dict[str, float]:
    """The words of a text, and their weights."""
    return {word: round(len(word) / 3, 5) for word in sorted(set(text.lower().split()))}
