"""The content of a collection's lines: vectors, or texts that an encoder turns into vectors."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pyserini_compneg.documents.collection import VECTOR, VECTORS, DocumentBlock, vector_field
from pyserini_compneg.documents.formats import CollectionFile
from pyserini_compneg.documents.passages import passage_documents, passage_texts
from pyserini_compneg.documents.source_documents import SourceDocument, UnreadFields, text_documents
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import DocumentEncoder
from pyserini_compneg.encode.hybrid import short_name
from pyserini_compneg.encode.query_encoders import same_model
from pyserini_compneg.lucene import IndexSettings
from pyserini_compneg.lucene.passage_reader import SOURCE, passage_fields, passage_id
from pyserini_compneg.support.errors import EncodingError, InputError
from pyserini_compneg.support.files import decoded_line
from pyserini_compneg.support.json_objects import parse_json_object

if TYPE_CHECKING:
    from pyserini_compneg.encode.models.tokenizer import TextTokenizer

_ENCODER = re.compile(rb'"encoder"\s*:\s*"([^"]*)"')


class Layer(NamedTuple):
    """Lines with an id and a vector each, and their sources. A second layer has the second passages of the lines."""

    start: int
    """The number of the first line in its block, from 0."""

    lines: bytes
    sources: bytes


class _Source:
    """The documents of blocks, and how their ids and passages are written."""

    query_tokenizer: TextTokenizer | None = None
    concepts: Sequence[str] | None = None

    def __init__(self, index: IndexSettings) -> None:
        self._index = index

    def _documents(self, block: DocumentBlock) -> tuple[dict[int, SourceDocument], list[str]]:
        raise NotImplementedError

    def identified(self, block: DocumentBlock) -> bytes:
        """The lines of one block with the ids of their documents. The vectors may be empty."""
        documents, _ = self._documents(block)
        lines = {number: {"id": one.docid, "vector": {}} for number, one in documents.items()}
        return _lines(lines, range(block.lines.count(b"\n") + 1))

    def compared(self, block: DocumentBlock) -> Layer:
        """What an update compares with the index: ids, as ``encoded`` gives them first, and their sources."""
        if not self._index.passages:
            return Layer(0, self.identified(block), block.lines)
        documents, _ = self._documents(block)
        return self._layers(block, documents, [[{}]] * len(documents))[0]

    def _layers(
        self,
        block: DocumentBlock,
        documents: Mapping[int, SourceDocument],
        vectors: Iterable[Sequence[Mapping[str, float]]],
    ) -> list[Layer]:
        """The passages of the documents, the n-th ones in the n-th layer. So each keeps the number of its line.

        The first layer has all lines of the block, so that an update compares whole documents: the first passage has
        its document's line. Others have the lines from their first document to their last.
        """
        whole = block.lines.split(b"\n")
        layers: list[tuple[dict[int, Any], dict[int, Any]]] = [({}, {})]
        for (number, document), passages in zip(documents.items(), vectors, strict=True):
            record = document.record
            values = {field: record[field] for field in self._index.filter_fields if field in record}
            for passage, vector in enumerate(passages):
                if passage == len(layers):
                    layers.append(({}, {}))
                lines, sources = layers[passage]
                lines[number] = {"id": passage_id(document.docid, passage), "vector": vector}
                line = {} if passage else {SOURCE: whole[number].decode().rstrip("\r")}
                sources[number] = passage_fields(document.docid, passage) | values | line
        spans = [range(len(whole)), *(range(next(iter(lines)), next(reversed(lines)) + 1) for lines, _ in layers[1:])]
        return [
            Layer(span.start, _lines(lines, span), _lines(sources, span))
            for (lines, sources), span in zip(layers, spans, strict=True)
        ]


class VectorSource(_Source):
    """Lines that contain vectors. The vectors are checked when they are indexed.

    In a folder that ``encode`` made, a file names the encoder of the vectors; another encoder is refused. Elsewhere, a
    line may name it. The user may override ``impact_scale``. In an index of passages, each line has the ``vectors`` of
    a document's passages.
    """

    most_lines: int | None = None

    def __init__(self, files: Sequence[CollectionFile], encoder: str, index: IndexSettings) -> None:
        super().__init__(index)
        folder = files[0].path.parent
        about = read_about(folder / VECTORS_FILE)
        if about and not same_model(str(about["encoder"]), about["settings"], encoder):
            raise InputError(f"{folder}: the vectors are of {about['encoder']!r}, not of {encoder!r}")
        found = vector_field(files)
        if index.passages and found == VECTOR:
            what = "the documents bring their vectors, so there is no text to split into passages"
            raise EncodingError(what, where=encoder, remedy="encode the texts with encode --passages")
        if found == VECTORS and not index.passages:
            what = "documents have the `vectors` of their passages, and nothing says how their texts were split"
            raise InputError(what, where=folder, remedy="give --passages words=N,overlap=N")
        self._named = None if about else encoder
        self.impact_scale: float = about.get("impact_scale", 1.0)
        self.settings: Mapping[str, float | int | str] = about.get("settings", {})
        self.signed: bool = about.get("signed", False)
        self.concepts = about.get("concepts")

    def encoded(self, blocks: Iterable[DocumentBlock]) -> Iterator[tuple[DocumentBlock, list[Layer], list[str]]]:
        """For each block its lines and sources, and the problems of bad lines. The bad lines are left blank."""
        for given in blocks:
            block = self._own(given)
            if self._index.passages:
                documents, problems = self._documents(block)
                vectors = (document.record[VECTORS] for document in documents.values())
                yield block, self._layers(block, documents, vectors), problems
            else:
                faults = [fault for _, fault in sorted(block.faults.items())]
                yield block, [Layer(0, block.lines, block.lines)], faults

    def _own(self, block: DocumentBlock) -> DocumentBlock:
        """The block with a fault for each line that names another encoder."""
        if self._named is None or all(_alike(found, self._named) for found in set(_ENCODER.findall(block.lines))):
            return block
        lines, faults = block.lines.split(b"\n"), dict(block.faults)
        for number, (source, line) in enumerate(block.numbered()):
            with suppress(InputError):  # reported when documents are indexed
                name = parse_json_object(decoded_line(line, source), source, repeated_keys=True).get("encoder")
                if isinstance(name, str) and not _alike(name.encode(), self._named):
                    what = f"{source}: the vector is of {name!r}, not of {self._named!r}"
                    faults[block.first_line + number] = f"{what}; encode the text with the encoder of the index"
                    lines[number] = b""
        return block._replace(lines=b"\n".join(lines), faults=faults)

    def _documents(self, block: DocumentBlock) -> tuple[dict[int, SourceDocument], list[str]]:
        split = self._index.passages if self._named else {}  # encode gives each passage its vector
        return passage_documents(block, split)

    def identified(self, block: DocumentBlock) -> bytes:
        """The lines with the ids. A line of another encoder is refused when it is encoded."""
        return super().identified(block) if self._index.passages else block.lines


class TextSource(_Source):
    """Lines with texts. The filter fields are not reported as unread. See also :class:`VectorSource`."""

    def __init__(self, encoder: DocumentEncoder, index: IndexSettings) -> None:
        super().__init__(index)
        self._encoder = encoder
        self.impact_scale = encoder.impact_scale
        self.settings = encoder.settings
        self.signed = encoder.signed
        self.most_lines = encoder.most_lines
        self.query_tokenizer, self.concepts = encoder.query_tokenizer, encoder.concepts

    def encoded(self, blocks: Iterable[DocumentBlock]) -> Iterator[tuple[DocumentBlock, list[Layer], list[str]]]:
        """Encodes the texts of the blocks. While it works on a block, an encoder may ask for the next block."""
        read: deque[tuple[DocumentBlock, dict[int, SourceDocument], list[int], list[str]]] = deque()
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

        for encoded in self._encoder.stream(texts()):
            block, documents, counts, problems = read.popleft()
            remaining = iter(encoded)
            vectors = [list(islice(remaining, count)) for count in counts]
            if self._index.passages:
                yield block, self._layers(block, documents, vectors), problems
            else:
                pairs = zip(documents.items(), vectors, strict=True)
                lines = {number: {"id": one.docid, "vector": vector} for (number, one), [vector] in pairs}
                all_lines = range(block.lines.count(b"\n") + 1)
                yield block, [Layer(0, _lines(lines, all_lines), block.lines)], problems
        unread.warn()

    def _documents(self, block: DocumentBlock) -> tuple[dict[int, SourceDocument], list[str]]:
        return text_documents(block)


Source = VectorSource | TextSource


def _alike(name: bytes, encoder: str) -> bool:
    """Whether a name may mean the encoder. A model's folder may have moved, so only the last part of a path counts."""
    return short_name(name.decode(errors="replace")) == short_name(encoder)


def _lines(records: Mapping[int, Mapping[str, Any]], span: range) -> bytes:
    """Lines of JSON for a span of a block's lines: each record at its number, all other lines blank."""
    return b"\n".join(
        json.dumps(records[number], ensure_ascii=False).encode() if number in records else b"" for number in span
    )
