"""From a collection to an index: reads, encodes where there are only texts, and goes on where a kill ended it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack

from pyserini_compneg.encode import BM25, Bm25DocumentEncoder
from pyserini_compneg.encode.bm25 import IMPACT_SCALE, term_counts
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.files import decoded_line
from pyserini_compneg.index.building import check_target, unfinished_plan
from pyserini_compneg.index.collection import (
    Block,
    SourceDocument,
    collection_files,
    iter_collection_blocks,
    source_document,
)
from pyserini_compneg.index.indexer import ImpactIndexer, OnError
from pyserini_compneg.lucene import Manifest
from pyserini_compneg.progress import progress

CHECKPOINT_SECONDS = 30.0
"""A kill costs at most the work of this time; a checkpoint itself takes well below a second."""

_BATCH = 512


class WriteOptions(TypedDict, total=False):
    """What :class:`ImpactIndexer` is told, and means, besides."""

    signed: bool
    pair_terms: int
    threads: int | None
    store_raw: bool
    store_docvectors: bool
    optimize: bool
    overwrite: bool


def build_index(
    collection: str | Path,
    index: str | Path,
    encoder: str = BM25,
    *,
    impact_scale: float | None = None,
    resume: bool = False,
    on_error: OnError = "stop",
    **options: Unpack[WriteOptions],
) -> Manifest:
    """Builds an impact index of a collection; it appears complete, under its name, or not at all.

    Args:
        collection: A JSON Lines file, plain or gzip, or a folder of them, read in the order of their names.
        index: The folder to make.
        encoder: ``bm25`` encodes the documents' texts. Any other name is that of the model which made the vectors that
            the documents carry; it goes into the manifest.
        impact_scale: Impact = round(weight * impact_scale). By default 256 for BM25, and 1 for vectors, whose weights
            must then be whole numbers.
        resume: Go on with a build of the same collection that was killed, if there is one.
        on_error: ``stop`` at a bad document, or ``skip`` it; of documents with the same id, all but the first are bad.
        **options: See :class:`ImpactIndexer`.

    Returns:
        The manifest of the index.

    Raises:
        CollectionError: A bad document, an id given twice, or no document with a term at all.
        EncodingError: An option out of range.
        OutputError: The folder exists and ``overwrite`` is not set, or cannot be written.
    """
    files = collection_files(collection)
    place = Path(os.path.realpath(index))
    if inside := next((file for file in files if file.resolve().is_relative_to(place)), None):
        raise CollectionError(f"{inside}: lies in the folder of the index, {index}; give another --index")
    check_target(place, options.get("overwrite", False))  # before the collection is read
    if encoder == BM25:
        source: _Source = _Texts(_average_length(files, index, resume, on_error))
    else:
        source = _Vectors()
    with _CollectionIndexer(
        collection,
        files,
        source,
        index,
        encoder,
        settings=source.settings,
        impact_scale=source.impact_scale if impact_scale is None else impact_scale,
        sources=_fingerprint(files),
        resume=resume,
        on_error=on_error,
        **options,
    ) as indexer:
        indexer.add_collection()
    return indexer.manifest


class _Source(Protocol):
    """What the lines of a collection hold."""

    impact_scale: float
    settings: Mapping[str, float | int | str]

    def encoded(self, block: Block) -> tuple[bytes, list[str]]:
        """For each line of the block one with an id and a vector, or a blank one, and the problems with the others."""

    def identified(self, block: Block) -> bytes:
        """As ``encoded``, but the vectors may be empty, and the problems are known."""


class _Vectors:
    """Lines that bring their vectors; checked where they are indexed."""

    impact_scale = 1.0
    settings: Mapping[str, float | int | str] = {}

    def encoded(self, block: Block) -> tuple[bytes, list[str]]:
        return block.lines, []

    def identified(self, block: Block) -> bytes:
        return block.lines


class _Texts:
    """Lines with texts, which BM25 encodes."""

    impact_scale = IMPACT_SCALE

    def __init__(self, average_length: float) -> None:
        self._encoder = Bm25DocumentEncoder(average_length)
        self.settings: Mapping[str, float | int | str] = {
            "k1": self._encoder.k1,
            "b": self._encoder.b,
            "average_length": average_length,
        }

    def encoded(self, block: Block) -> tuple[bytes, list[str]]:
        documents, problems = _documents(block)
        lines = [b""] * len(block.lines.split(b"\n"))
        numbers = list(documents)
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start : start + _BATCH]
            vectors = self._encoder.encode_batch([documents[number].text or "" for number in batch])
            for number, vector in zip(batch, vectors, strict=True):
                lines[number] = _json_line(documents[number], vector)
        return b"\n".join(lines), problems

    def identified(self, block: Block) -> bytes:
        documents, _ = _documents(block)
        numbers = range(len(block.lines.split(b"\n")))
        return b"\n".join(_json_line(documents[number], {}) if number in documents else b"" for number in numbers)


class _CollectionIndexer(ImpactIndexer):
    """An indexer of files, which knows where everything stands."""

    def __init__(
        self, collection: str | Path, files: Sequence[Path], source: _Source, *arguments: Any, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._name = str(collection)
        self._files = files
        self._source = source

    def add_collection(self) -> None:
        """Adds all documents, from the last checkpoint on."""
        saved = time.monotonic()
        with progress(None, None, " docs", "indexing") as bar:
            for block in iter_collection_blocks(self._files, tuple(self.position or (0, 1))):
                self._add(block)
                bar.update(self.manifest.documents - bar.n)
                if time.monotonic() - saved > CHECKPOINT_SECONDS:
                    self.checkpoint(block.end)
                    saved = time.monotonic()
        if self.position:
            self.checkpoint((len(self._files), 1))  # what is left to do can take its time

    def _add(self, block: Block) -> None:
        lines, problems = self._source.encoded(block)
        self._report(problems)
        self.add_lines(lines, block.name, block.first_line, block.lines)

    def _settle_duplicates(self) -> None:
        """Refuses an id given twice, or keeps its first document; reads the collection again for the places."""
        duplicates = self._writer.duplicate_ids() if self._skip else self._writer.duplicate_ids(1)
        if not duplicates:
            return
        if self._skip:
            self._writer.delete(duplicates)
        first: dict[str, str] = {}
        for block in iter_collection_blocks(self._files):
            lines = block.lines.split(b"\n")
            kept = [b""] * len(lines)
            for number, docid in self._writer.find(self._source.identified(block), duplicates):
                place = f"{block.name}:{block.first_line + number}"
                if docid in first:
                    self._report([f"{place}: document id {docid!r} was given at {first[docid]} already"])
                else:
                    first[docid] = place
                    kept[number] = lines[number]
            if self._skip and any(kept):
                self._add(block._replace(lines=b"\n".join(kept)))
        self.drain()
        if lost := [docid for docid in duplicates if not self._skip or docid not in first]:
            raise CollectionError(f"{self._name}: document id {lost[0]!r} is given twice, but not now: it has changed")


def _json_line(document: SourceDocument, vector: Mapping[str, float]) -> bytes:
    return json.dumps({"id": document.docid, "vector": vector}, ensure_ascii=False).encode()


def _documents(block: Block) -> tuple[dict[int, SourceDocument], list[str]]:
    """The documents with texts, by their line in the block, and what is wrong with the other lines."""
    documents: dict[int, SourceDocument] = {}
    problems: list[str] = []
    for number, (source, line) in enumerate(block.numbered()):
        try:
            text = decoded_line(line, source)
            if text and not text.isspace():
                documents[number] = _with_text(source_document(text, source))
        except CollectionError as error:
            problems.append(str(error))
    return documents, problems


def _with_text(document: SourceDocument) -> SourceDocument:
    if document.text is None:
        raise CollectionError(
            f"{document.source}: only a `vector`, which BM25 cannot use; give the model that made it as --encoder"
        )
    return document


def _average_length(files: Sequence[Path], index: str | Path, resume: bool, on_error: OnError) -> float:
    """Terms a document; known already where a build of these files is gone on with."""
    plan = unfinished_plan(index) if resume else None
    if plan and plan["encoder"] == BM25 and plan["sources"] == _fingerprint(files):
        return float(plan["settings"]["average_length"])
    terms = documents = 0
    with progress(None, None, " docs", "counting terms") as bar:
        for block in iter_collection_blocks(files):
            found, problems = _documents(block)
            if problems and on_error == "stop":
                raise CollectionError(problems[0])
            counts = term_counts([document.text or "" for document in found.values()])
            terms += sum(counts)
            documents += sum(count > 0 for count in counts)
            bar.update(len(found))
    return terms / documents if documents else 1.0


def _fingerprint(files: Sequence[Path]) -> list[list[str | int]]:
    """By what a collection is known to be the same still: names, sizes and times of change."""
    return [[str(file.resolve()), status.st_size, status.st_mtime_ns] for file in files for status in [file.stat()]]
