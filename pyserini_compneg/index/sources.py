"""The content of a collection's lines: vectors, or texts that an encoder turns into vectors."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyserini_compneg.documents.collection import Block
from pyserini_compneg.documents.formats import CollectionFile
from pyserini_compneg.documents.source_documents import SourceDocument, UnreadFields, text_documents
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import DocumentEncoder
from pyserini_compneg.encode.registry import made_by
from pyserini_compneg.support.errors import InputError


class VectorSource:
    """Lines that contain vectors. The vectors are checked when they are indexed.

    In a folder that ``encode`` made, a file names the encoder of the vectors; another encoder is refused. The user may
    override ``impact_scale``.
    """

    most_lines: int | None = None

    def __init__(self, files: Sequence[CollectionFile], encoder: str) -> None:
        folder = files[0].path.parent
        about = read_about(folder / VECTORS_FILE)
        if about and not made_by(str(about["encoder"]), about["settings"], encoder):
            raise InputError(f"{folder}: the vectors are of {about['encoder']!r}, not of {encoder!r}")
        self.impact_scale: float = about.get("impact_scale", 1.0)
        self.settings: Mapping[str, float | int | str] = about.get("settings", {})
        self.signed: bool = about.get("signed", False)

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes, list[str]]]:
        """For each block, lines with an id and a vector each, and the problems of bad lines, which are left blank."""
        for block in blocks:
            yield block, block.lines, list(block.faults.values())

    def identified(self, block: Block) -> bytes:
        """The lines of one block with the ids that ``encoded`` gives them. The vectors may be empty."""
        return block.lines


class TextSource:
    """Lines with texts. The fields in ``read`` are not reported as unread. See also :class:`VectorSource`."""

    def __init__(self, encoder: DocumentEncoder, read: Sequence[str] = ()) -> None:
        self._encoder = encoder
        self._read = read
        self.impact_scale = encoder.impact_scale
        self.settings = encoder.settings
        self.signed = encoder.signed
        self.most_lines = encoder.most_lines

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes, list[str]]]:
        """Encodes the texts of the blocks. While it works on a block, an encoder may ask for the next block."""
        read: deque[tuple[Block, dict[int, SourceDocument], list[str]]] = deque()
        unread = UnreadFields("join them in `contents`, or rename them to `title` and `text`")

        def texts() -> Iterator[list[str]]:
            for block in blocks:
                documents, problems = text_documents(block)
                read.append((block, documents, problems))
                for document in documents.values():
                    unread.add(document.docid, [field for field in document.unread if field not in self._read])
                yield [document.text or "" for document in documents.values()]

        for vectors in self._encoder.stream(texts()):
            block, documents, problems = read.popleft()
            yield block, _lines(block, documents, vectors), problems
        unread.warn()

    def identified(self, block: Block) -> bytes:
        documents, _ = text_documents(block)
        return _lines(block, documents, [{}] * len(documents))


Source = VectorSource | TextSource


def _lines(block: Block, documents: Mapping[int, SourceDocument], vectors: Sequence[Mapping[str, float]]) -> bytes:
    lines = [b""] * len(block.lines.split(b"\n"))
    for (number, document), vector in zip(documents.items(), vectors, strict=True):
        lines[number] = json.dumps({"id": document.docid, "vector": vector}, ensure_ascii=False).encode()
    return b"\n".join(lines)
