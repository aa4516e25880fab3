"""Builds an index: reads, encodes, quantises, writes, and puts the result in place as a whole."""

from __future__ import annotations

import logging
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_compneg.encode import BM25, Bm25DocumentEncoder
from pyserini_compneg.encode.bm25 import IMPACT_SCALE, term_counts
from pyserini_compneg.errors import CollectionError, EncodingError, OutputError
from pyserini_compneg.index.collection import SourceDocument, iter_collection
from pyserini_compneg.index.impacts import checked_impacts, quantize
from pyserini_compneg.lucene import LARGEST_IMPACT, MANIFEST_NAME, ImpactWriter, Manifest, java_class
from pyserini_compneg.progress import progress

EMPTY_DOCUMENTS_LOG = "empty-documents.txt"
_BATCH = 512
_BATCH_CHARACTERS = 1 << 22
_MOST_THREADS = 4 * (os.cpu_count() or 1)
_logger = logging.getLogger(__name__)


def build_index(
    collection: str | Path,
    index: str | Path,
    encoder: str = BM25,
    *,
    impact_scale: float | None = None,
    threads: int = 1,
    store_raw: bool = False,
    optimize: bool = False,
    overwrite: bool = False,
) -> Manifest:
    """Builds an impact index; it appears complete, under its name, or not at all.

    Args:
        collection: A JSON Lines file, or a folder of them; see :func:`iter_collection`.
        index: The folder to make.
        encoder: ``bm25`` encodes the documents' texts. Any other name is that of the model which made the vectors that
            the documents carry; it goes into the manifest.
        impact_scale: Impact = round(weight * impact_scale). By default 256 for BM25, and 1 for vectors, whose weights
            must then be whole numbers.
        threads: Threads that write; more than four a processor are not used.
        store_raw: Keep each document's line, to be shown with its hit.
        optimize: Merge the index into one segment.
        overwrite: Replace an index that is there already.

    Returns:
        The manifest of the index.

    Raises:
        CollectionError: A bad document, an id given twice, or no document with a term at all.
        EncodingError: A bad vector.
        OutputError: The folder exists and ``overwrite`` is not set, or cannot be written.
    """
    target = Path(os.path.realpath(index))
    if str(collection) == "-":
        raise CollectionError("a collection is read more than once, so it cannot be standard input; give a file")
    if threads < 1 or not 0 < (impact_scale or 1) < math.inf:
        raise ValueError(f"threads and impact_scale must be above 0, got {threads} and {impact_scale}")
    java_class("io.compneg.ImpactWriter")  # if there is no Java, say so before anything is made
    threads = min(threads, _MOST_THREADS)
    with _built_beside(target, overwrite) as folder, ImpactWriter(folder, threads) as writer:
        if encoder == BM25:
            scale = impact_scale or IMPACT_SCALE
            if scale > LARGEST_IMPACT:
                raise EncodingError(f"the impact scale of BM25 must be at most {LARGEST_IMPACT}, got {scale:g}")
            bm25 = Bm25DocumentEncoder(_average_length(collection))
            settings = {"k1": bm25.k1, "b": bm25.b, "average_length": bm25.average_length}
            impacts = _encoded(collection, bm25, scale)
        else:
            scale = impact_scale or 1.0
            settings = {}
            impacts = _precomputed(collection, scale)
        documents, empty = 0, 0
        with (folder / EMPTY_DOCUMENTS_LOG).open("w", encoding="utf-8") as log:
            for document, vector in progress(impacts, None, "docs", "indexing"):
                if vector:
                    writer.add(document.docid, vector, document.raw if store_raw else None)
                    documents += 1
                else:
                    log.write(f"{document.docid}\t{document.source}\n")
                    empty += 1
        if not documents:
            raise CollectionError(f"{collection}: no document with a term in it, so there is nothing to index")
        if (duplicate := writer.finish(optimize)) is not None:
            raise _duplicate(collection, duplicate)
        if not empty:
            (folder / EMPTY_DOCUMENTS_LOG).unlink()
        manifest = Manifest(encoder, settings, scale, documents=documents, empty_documents=empty)
        manifest.write(folder)
    if empty:
        _logger.warning("%d empty documents were left out; they are named in %s", empty, target / EMPTY_DOCUMENTS_LOG)
    return manifest


def _encoded(
    collection: str | Path, encoder: Bm25DocumentEncoder, scale: float
) -> Iterator[tuple[SourceDocument, dict[str, int]]]:
    for documents in _batches(iter_collection(collection)):
        vectors = encoder.encode_batch([_required_text(document) for document in documents])
        yield from ((document, quantize(vector, scale)) for document, vector in zip(documents, vectors, strict=True))


def _precomputed(collection: str | Path, scale: float) -> Iterator[tuple[SourceDocument, dict[str, int]]]:
    for document in iter_collection(collection):
        if document.vector is None:
            raise CollectionError(f"{document.source}: no `vector`; to encode texts here, use --encoder bm25")
        yield document, checked_impacts(document.vector, scale, document.source)


def _average_length(collection: str | Path) -> float:
    terms = documents = 0
    for batch in _batches(progress(iter_collection(collection), None, "docs", "counting terms")):
        counts = term_counts([_required_text(document) for document in batch])
        terms += sum(counts)
        documents += sum(count > 0 for count in counts)
    return terms / documents if documents else 1.0


def _required_text(document: SourceDocument) -> str:
    if document.text is None:
        raise CollectionError(
            f"{document.source}: only a `vector`, which BM25 cannot use; give the model that made it as --encoder"
        )
    return document.text


def _batches(documents: Iterable[SourceDocument]) -> Iterator[list[SourceDocument]]:
    """Groups documents, few of them where they are long, so that memory does not grow with their length."""
    batch: list[SourceDocument] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.raw)
        if len(batch) == _BATCH or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _duplicate(collection: str | Path, docid: str) -> CollectionError:
    """The error for an id given twice; reads the collection again for the two places."""
    places = [document.source for document in iter_collection(collection) if document.docid == docid]
    if len(places) < 2:
        return CollectionError(f"{collection}: document id {docid!r} is given twice")
    return CollectionError(f"{places[1]}: document id {docid!r} was given at {places[0]} already")


def _check_target(target: Path, overwrite: bool) -> None:
    """Makes sure that nothing but an index is ever replaced."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir() or not ((target / MANIFEST_NAME).exists() or any(target.glob("segments_*"))):
        raise OutputError(f"{target}: exists and is no index; give another --index")
    if not overwrite:
        raise OutputError(f"{target}: exists already; give --overwrite to replace it, or another --index")


def _take_place(folder: Path, target: Path) -> None:
    """Renames the folder to the target, whose old content goes once the new one is in place."""
    if not target.exists():
        folder.rename(target)
        return
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    target.rename(old)
    try:
        folder.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _built_beside(target: Path, overwrite: bool) -> Iterator[Path]:
    """A new folder beside the target, which takes its name on a clean exit and vanishes on any exception."""
    _check_target(target, overwrite)
    folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}.building")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as cause:
        raise OutputError(f"{target}: cannot be written: {(cause.strerror or str(cause)).lower()}") from None
    try:
        yield folder
        _check_target(target, overwrite)  # another build may have been faster
        _take_place(folder, target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
