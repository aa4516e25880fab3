"""The content of a collection's lines: vectors, or texts that an encoder turns into vectors."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from pyserini_compneg.documents.collection import Block
from pyserini_compneg.documents.formats import CollectionFile
from pyserini_compneg.documents.passages import passage_texts
from pyserini_compneg.documents.source_documents import SourceDocument, UnreadFields, text_documents
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import DocumentEncoder
from pyserini_compneg.encode.registry import made_by
from pyserini_compneg.lucene import IndexSettings
from pyserini_compneg.lucene.passage_reader import SOURCE, passage_fields, passage_id
from pyserini_compneg.support.errors import InputError

Layer = tuple[bytes, bytes]
"""Lines with an id and a vector each, and their sources. In a second layer, each has the second passage of its line."""


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

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, list[Layer], list[str]]]:
        """For each block its lines and sources, and the problems of bad lines, which are left blank."""
        for block in blocks:
            yield block, [(block.lines, block.lines)], list(block.faults.values())

    def identified(self, block: Block) -> bytes:
        """The lines of one block with the ids that ``encoded`` gives them. The vectors may be empty."""
        return block.lines


class TextSource:
    """Lines with texts. The filter fields are not reported as unread. See also :class:`VectorSource`."""

    def __init__(self, encoder: DocumentEncoder, index: IndexSettings) -> None:
        self._encoder = encoder
        self._index = index
        self.impact_scale = encoder.impact_scale
        self.settings = encoder.settings
        self.signed = encoder.signed
        self.most_lines = encoder.most_lines

    def encoded(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, list[Layer], list[str]]]:
        """Encodes the texts of the blocks. While it works on a block, an encoder may ask for the next block."""
        read: deque[tuple[Block, dict[int, SourceDocument], list[int], list[str]]] = deque()
        unread = UnreadFields("join them in `contents`, or rename them to `title` and `text`")

        def texts() -> Iterator[list[str]]:
            for block in blocks:
                documents, problems = text_documents(block)
                split = [passage_texts(document, self._index.passages) for document in documents.values()]
                read.append((block, documents, list(map(len, split)), problems))
                for document in documents.values():
                    known = self._index.filter_fields
                    unread.add(document.docid, [field for field in document.unread if field not in known])
                yield list(chain.from_iterable(split))

        for vectors in self._encoder.stream(texts()):
            block, documents, counts, problems = read.popleft()
            if self._index.passages:
                yield block, self._layers(block, documents, counts, vectors), problems
            else:
                yield block, [(_lines(block, documents, vectors), block.lines)], problems
        unread.warn()

    def _layers(
        self,
        block: Block,
        documents: Mapping[int, SourceDocument],
        counts: Sequence[int],
        vectors: Sequence[Mapping[str, float]],
    ) -> list[Layer]:
        """The passages of the documents, the n-th ones in the n-th layer. So each keeps the number of its line."""
        whole, remaining = block.lines.split(b"\n"), iter(vectors)
        layers: list[tuple[list[bytes], list[bytes]]] = []
        for (number, document), count in zip(documents.items(), counts, strict=True):
            record = document.record
            values = {field: record[field] for field in self._index.filter_fields if field in record}
            for passage, vector in enumerate(islice(remaining, count)):
                if passage == len(layers):
                    layers.append(([b""] * len(whole), [b""] * len(whole)))
                lines, sources = layers[passage]
                lines[number] = _json({"id": passage_id(document.docid, passage), "vector": vector})
                source = passage_fields(document.docid, passage) | values
                if self._index.store_raw and not passage:
                    source[SOURCE] = whole[number].decode()
                sources[number] = _json(source)
        return [(b"\n".join(lines), b"\n".join(sources)) for lines, sources in layers]

    def identified(self, block: Block) -> bytes:
        documents, _ = text_documents(block)
        return _lines(block, documents, [{}] * len(documents))


Source = VectorSource | TextSource


def _lines(block: Block, documents: Mapping[int, SourceDocument], vectors: Sequence[Mapping[str, float]]) -> bytes:
    lines = [b""] * len(block.lines.split(b"\n"))
    for (number, document), vector in zip(documents.items(), vectors, strict=True):
        lines[number] = _json({"id": document.docid, "vector": vector})
    return b"\n".join(lines)


def _json(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()
