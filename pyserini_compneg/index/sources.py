"""What the lines of a collection hold: vectors, or texts that an encoder makes vectors of."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pyserini_compneg.datasets.collection import Block, SourceDocument, text_documents


class Source(Protocol):
    """Lines with ids and vectors, in the end.

    Attributes:
        impact_scale: Impact = round(weight * impact_scale), unless the user says otherwise.
        settings: What the vectors depend on, for the manifest.
        signed: Whether weights may be negative.
        most_lines: The lines of a block, at most; None for as many as are read together.
    """

    impact_scale: float
    settings: Mapping[str, float | int | str]
    signed: bool
    most_lines: int | None

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes, list[str]]]:
        """Each block, for each of its lines one with an id and a vector or a blank one, and what is wrong."""

    def identified(self, block: Block) -> bytes:
        """As ``encoded``, but the vectors may be empty, and the problems are known."""


class DocumentEncoder(Protocol):
    """What makes vectors of documents' texts; the attributes are those of :class:`Source`."""

    impact_scale: float
    settings: Mapping[str, float | int | str]
    signed: bool
    most_lines: int | None

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        """The vectors of batches of texts, in their order."""


class VectorSource:
    """Lines that bring their vectors; checked where they are indexed."""

    impact_scale = 1.0
    settings: Mapping[str, float | int | str] = {}
    signed = False
    most_lines: int | None = None

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes, list[str]]]:
        """See :class:`Source`."""
        for block in blocks:
            yield block, block.lines, []

    def identified(self, block: Block) -> bytes:
        """See :class:`Source`."""
        return block.lines


class TextSource:
    """Lines with texts.

    Args:
        encoder: Makes vectors of them.
    """

    def __init__(self, encoder: DocumentEncoder) -> None:
        self._encoder = encoder
        self.impact_scale = encoder.impact_scale
        self.settings = encoder.settings
        self.signed = encoder.signed
        self.most_lines = encoder.most_lines

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes, list[str]]]:
        """See :class:`Source`. An encoder may ask for the texts of a block while it works on the one before."""
        read: deque[tuple[Block, dict[int, SourceDocument], list[str]]] = deque()

        def texts() -> Iterator[list[str]]:
            for block in blocks:
                documents, problems = text_documents(block)
                read.append((block, documents, problems))
                yield [document.text or "" for document in documents.values()]

        for vectors in self._encoder.stream(texts()):
            block, documents, problems = read.popleft()
            yield block, _lines(block, documents, vectors), problems

    def identified(self, block: Block) -> bytes:
        """See :class:`Source`."""
        documents, _ = text_documents(block)
        return _lines(block, documents, [{}] * len(documents))


def _lines(block: Block, documents: Mapping[int, SourceDocument], vectors: Sequence[Mapping[str, float]]) -> bytes:
    lines = [b""] * len(block.lines.split(b"\n"))
    for (number, document), vector in zip(documents.items(), vectors, strict=True):
        lines[number] = json.dumps({"id": document.docid, "vector": vector}, ensure_ascii=False).encode()
    return b"\n".join(lines)
