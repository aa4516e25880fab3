"""From a collection to an index: reads, encodes where there are only texts, and goes on where a kill ended it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

from pyserini_compneg.encode import BM25, Bm25DocumentEncoder
from pyserini_compneg.encode.bm25 import IMPACT_SCALE, term_counts
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.files import decoded_line
from pyserini_compneg.index.building import unfinished_plan
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

Place: TypeAlias = tuple[int, int]


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
        collection: A JSON Lines file, or a folder of them; see :func:`iter_collection`.
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
    encoding = _bm25_encoding(files, index, resume, on_error) if encoder == BM25 else _VECTORS
    with ImpactIndexer(
        index,
        encoder,
        settings=encoding.settings,
        impact_scale=impact_scale or encoding.impact_scale,
        sources=_fingerprint(files),
        resume=resume,
        on_error=on_error,
        **options,
    ) as indexer:
        _add_all(indexer, files, encoding.add)
        if not indexer.has_terms():
            raise CollectionError(f"{collection}: no document with a term in it, so there is nothing to index")
        _settle_duplicates(indexer, files, encoding.add, on_error)
    return indexer.manifest


class _Encoding(NamedTuple):
    """How a block of lines gets into the index, and what the manifest says of it."""

    add: Callable[[ImpactIndexer, Block], None]
    impact_scale: float
    settings: dict[str, float | int | str]


def _add_vectors(indexer: ImpactIndexer, block: Block) -> None:
    indexer.add_lines(block.lines, str(block.file), block.first_line)


_VECTORS = _Encoding(_add_vectors, 1.0, {})


def _bm25_encoding(files: Sequence[Path], index: str | Path, resume: bool, on_error: OnError) -> _Encoding:
    plan = unfinished_plan(index) if resume else None
    if plan and plan["encoder"] == BM25 and plan["sources"] == _fingerprint(files):
        average_length = plan["settings"]["average_length"]
    else:
        average_length = _average_length(files, on_error)
    encoder = Bm25DocumentEncoder(average_length)

    def add(indexer: ImpactIndexer, block: Block) -> None:
        lines = [b""] * len(block.lines.split(b"\n"))
        documents, problems = _documents(block)
        indexer.report(problems)
        numbers = list(documents)
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start : start + _BATCH]
            vectors = encoder.encode_batch([documents[number].text or "" for number in batch])
            for number, vector in zip(batch, vectors, strict=True):
                record = {"id": documents[number].docid, "vector": vector}
                lines[number] = json.dumps(record, ensure_ascii=False).encode()
        indexer.add_lines(b"\n".join(lines), str(block.file), block.first_line, block.lines)

    settings = {"k1": encoder.k1, "b": encoder.b, "average_length": average_length}
    return _Encoding(add, IMPACT_SCALE, settings)


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


def _average_length(files: Sequence[Path], on_error: OnError) -> float:
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


def _add_all(indexer: ImpactIndexer, files: Sequence[Path], add: Callable[[ImpactIndexer, Block], None]) -> None:
    start: Place = tuple(indexer.position or (0, 1))
    saved = time.monotonic()
    with progress(None, None, " docs", "indexing") as bar:
        for block in iter_collection_blocks(files, start):
            add(indexer, block)
            bar.update(indexer.manifest.documents - bar.n)
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                indexer.checkpoint(block.end)
                saved = time.monotonic()
    if indexer.position:
        indexer.checkpoint((len(files), 1))  # what is left to do can take its time


def _settle_duplicates(
    indexer: ImpactIndexer, files: Sequence[Path], add: Callable[[ImpactIndexer, Block], None], on_error: OnError
) -> None:
    """Refuses an id given twice, or keeps its first document; reads the collection again for the places."""
    duplicates = set(indexer.duplicate_ids())
    if not duplicates:
        return
    skipped = indexer.skipped_places() if on_error == "skip" else set()
    if on_error == "skip":
        indexer.delete(duplicates)
    first: dict[str, str] = {}
    for block in iter_collection_blocks(files):
        kept = [b""] * (block.lines.count(b"\n") + 1)
        for number, (source, line) in enumerate(block.numbered()):
            docid = None if source in skipped else _docid(line, source)
            if docid not in duplicates:
                continue
            if docid in first:
                indexer.report([f"{source}: document id {docid!r} was given at {first[docid]} already"])
            else:
                first[docid] = source
                kept[number] = line
        if on_error == "skip" and any(kept):
            add(indexer, block._replace(lines=b"\n".join(kept)))


def _docid(line: bytes, source: str) -> str | None:
    try:
        return source_document(decoded_line(line, source), source).docid
    except CollectionError:
        return None


def _fingerprint(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    """By what a collection is known to be the same still: names, sizes and times of change."""
    return [(str(file.resolve()), status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]
