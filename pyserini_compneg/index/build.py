"""From the files of a collection to an index: reads them, encodes texts, and continues a build that was killed."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pyserini_compneg.documents.collection import (
    Block,
    Part,
    collection_files,
    fingerprint,
    has_vectors,
    iter_collection_blocks,
    say_formats,
)
from pyserini_compneg.documents.formats import CollectionFile, Format
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import BM25, Bm25DocumentEncoder, DocumentEncoder
from pyserini_compneg.encode.bm25 import count_terms, mean_length
from pyserini_compneg.encode.hybrid import HYBRID, HybridDocumentEncoder, split_name
from pyserini_compneg.encode.models import MINI, ModelOptions, StaticSide, load_checkpoint
from pyserini_compneg.expression.filters import checked_fields
from pyserini_compneg.index.index_folder import check_target, clear_stale, unfinished_plan
from pyserini_compneg.index.indexer import ImpactIndexer, OnError
from pyserini_compneg.index.sources import Source, TextSource, VectorSource
from pyserini_compneg.lucene import Manifest
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError
from pyserini_compneg.support.progress import progress

_logger = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 30.0
"""A kill costs at most this much work. A checkpoint itself takes well below a second."""


class WriteOptions(TypedDict, total=False):
    """The options that :func:`build_index` hands to :class:`ImpactIndexer`."""

    signed: bool
    pair_terms: int
    threads: int | None
    store_raw: bool
    store_docvectors: bool
    filter_fields: Sequence[str]
    optimize: bool
    reorder: bool
    overwrite: bool
    replace: bool


def build_index(
    collection: str | Path,
    index: str | Path,
    encoder: str = BM25,
    *,
    impact_scale: float | None = None,
    model_options: ModelOptions | None = None,
    bm25: Mapping[str, float] | None = None,
    resume: bool = False,
    on_error: OnError = "stop",
    collection_format: Format | None = None,
    part: Part | None = None,
    length: float | None = None,
    **options: Unpack[WriteOptions],
) -> Manifest:
    """Builds an impact index of a collection. It appears under its name when it is complete, or not at all.

    Args:
        collection: A file of JSON Lines, of a JSON list, of CSV or of TSV, plain or gzip, or a folder of such files,
            read in the order of their names.
        index: The folder to make.
        encoder: What encodes the documents' texts: ``bm25``, a model (a folder, or a name of the Hugging Face hub), or
            both, ``bm25+MODEL``. If documents bring vectors, it is the name of what made them, and only
            goes into the manifest.
        impact_scale: Impact = round(weight * impact_scale). By default 256 where BM25 takes part, 51.2 for models, as
            in Pyserini, and 1 for vectors that documents bring, whose weights must then be whole numbers.
        model_options: How the model is run; None for the defaults.
        bm25: BM25's ``k1`` and ``b``, where they are not 0.9 and 0.4.
        resume: Continue a build of the same collection that was killed, if there is one.
        on_error: ``stop`` at a bad document, or ``skip`` it. Of documents with the same id, all but the first are bad.
        collection_format: Which of these it is, ``jsonl``, ``json``, ``csv`` or ``tsv``; None to tell by its name and
            by how it begins.
        part: The part of the collection to index, as a shard of an index of it all; None for the whole collection.
        length: BM25's average length of a document, in terms; None for that of the documents.
        **options: See :class:`ImpactIndexer`.

    Returns:
        The manifest of the index.

    Raises:
        ArgumentError: ``k1`` or ``b`` outside of ``bm25``.
        InputError: A bad document, an id given twice, or no document with a term at all.
        EncodingError: An option out of range, or a model that cannot be used.
        DownloadError: A model that cannot be downloaded from the hub.
        OutputError: The folder exists and ``overwrite`` is not set, or cannot be written.
    """
    for name in sorted({"k1", "b"} & options.keys()):
        raise ArgumentError(f'{name} is no argument of its own; give both as bm25={{"k1": 0.9, "b": 0.4}}')
    fields = checked_fields(options.get("filter_fields", ()))
    chosen = part or Part(collection_files(collection, collection_format, fields))
    files = chosen.files
    if part is None:
        say_formats(files)
    sources = fingerprint(files) if part is None else [*fingerprint(files), [part.number, part.shards]]
    target = Path(os.path.realpath(index))
    if inside := next((path for path, *_ in files if path.resolve().is_relative_to(target)), None):
        raise InputError(f"{inside}: is in the folder of the index, {index}; give another folder")
    clear_stale(target)
    replace = options.get("replace", False)
    check_target(target, replace or options.get("overwrite", False))  # before the collection is read
    hybrid, model = split_name(encoder)
    folder = os.path.expanduser(model)  # the shell leaves ~ alone behind bm25+
    if model not in (BM25, MINI) and os.path.isdir(folder):
        # The whole path, so that searches find it from other folders.
        encoder = HYBRID * hybrid + os.path.realpath(folder)
    if bm25 and encoder != BM25 and not hybrid:
        raise EncodingError(f"{encoder}: k1 and b are parameters of bm25, not of this encoder")

    def average() -> float:
        known = unfinished_length(index, encoder, sources) if resume or replace else None
        return length or known or mean_length([count_terms(chosen, skip=on_error == "skip")])

    source = _source(files, encoder, model_options, partial(_bm25_encoder, bm25 or {}, average), fields)
    if bm25 and isinstance(source, VectorSource):
        raise EncodingError(f"{encoder}: the documents bring their vectors, so k1 and b have no use")
    options["signed"] = options.get("signed", False) or source.signed
    bar = progress(None, None, " docs", "indexing", summary=True)
    with (
        bar,
        _CollectionIndexer(
            collection,
            chosen,
            source,
            index,
            encoder,
            settings=source.settings,
            impact_scale=source.impact_scale if impact_scale is None else impact_scale,
            sources=sources,
            shard=part is not None,
            resume=resume,
            on_error=on_error,
            **options,
        ) as indexer,
    ):
        indexer.add_collection(bar)
    return indexer.manifest


def _source(
    files: Sequence[CollectionFile],
    encoder: str,
    model_options: ModelOptions | None,
    make_bm25: Callable[[], Bm25DocumentEncoder],
    read: Sequence[str],
) -> Source:
    brings_vectors = None if encoder == BM25 else has_vectors(files)
    if brings_vectors is False:
        hybrid, name = split_name(encoder)
        model = _model_encoder(name, model_options)
        return TextSource(HybridDocumentEncoder(make_bm25(), model) if hybrid else model, read)
    if model_options is not None and (brings_vectors or encoder == BM25):
        raise EncodingError(f"{encoder}: no model is run, so options of one, such as --precision, have no use")
    if encoder == BM25:
        if about := read_about(files[0].path.parent / VECTORS_FILE):
            said = "%s: has vectors of %s, and bm25 reads the texts beside them; give --encoder %s to index the vectors"
            _logger.warning(said, files[0].path.parent, about["encoder"], about["encoder"])
        return TextSource(make_bm25(), read)
    return VectorSource(files, encoder)


class _CollectionIndexer(ImpactIndexer):
    """An indexer of files, which knows the file and the line of every document."""

    def __init__(self, collection: str | Path, part: Part, source: Source, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._name = str(collection)
        self._part = part
        self._source = source

    def add_collection(self, bar: Any) -> None:
        """Adds all documents, from the last checkpoint on, and moves the progress bar."""
        saved = time.monotonic()
        bar.initial = bar.n = self.manifest.documents
        start = tuple(self.position or (0, 1))
        blocks = iter_collection_blocks(self._part, start, self._source.most_lines)
        for block, documents in self._add(blocks):
            bar.update(documents)
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.checkpoint(block.end)
                saved = time.monotonic()
        self.drain()
        bar.update(self.manifest.documents - bar.n)
        if self.position:
            self.checkpoint((len(self._part.files), 1))  # the search for duplicates can take long

    def _add(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, int]]:
        """Encodes and adds blocks; yields each when the indexer has it, with its documents."""
        for block, lines, problems in self._source.encoded(blocks):
            self._report(problems)
            self.add_lines(lines, block.name, block.first_line, block.lines)
            yield block, sum(map(bool, map(bytes.strip, lines.split(b"\n"))))

    def _check_duplicates(self) -> None:
        """Refuses an id given twice, or keeps its first document; reads the collection again to find the lines."""
        duplicates = self._writer.duplicate_ids() if self._skip else self._writer.duplicate_ids(1)
        if not duplicates:
            return
        if self._skip:
            self._writer.delete(duplicates, merge=not self._optimize)
        first: dict[str, str] = {}
        again: list[Block] = []
        for block in iter_collection_blocks(self._part):
            lines = block.lines.split(b"\n")
            kept = [b""] * len(lines)
            for number, docid in self._writer.find(self._source.identified(block), duplicates):
                position = f"{block.name}:{block.first_line + number}"
                if docid in first:
                    self._report([f"{position}: document id {docid!r} was given at {first[docid]} already"])
                else:
                    first[docid] = position
                    kept[number] = lines[number]
            if self._skip and any(kept):
                again.append(block._replace(lines=b"\n".join(kept), faults={}))
        for _ in self._add(again):
            pass
        self.drain()
        if lost := [docid for docid in duplicates if not self._skip or docid not in first]:
            raise InputError(
                f"{self._name}: document id {lost[0]!r} was given twice and is not any more; the collection has changed"
            )


def _model_encoder(name: str, options: ModelOptions | None) -> DocumentEncoder:
    from pyserini_compneg.encode.neural import ModelDocumentEncoder
    from pyserini_compneg.encode.sides import load_side

    checkpoint = load_checkpoint(name, options)
    if isinstance(checkpoint.query, StaticSide):
        load_side(checkpoint.query, ModelOptions())  # what cannot be read for queries is no use to index
    return ModelDocumentEncoder(checkpoint, options)


def unfinished_length(index: str | Path, encoder: str, sources: Any) -> float | None:
    """The average length of documents, if an unfinished build of these sources has found it; else None."""
    plan = unfinished_plan(index)
    if plan and plan["encoder"] == encoder and plan["sources"] == sources:
        return float(plan["settings"]["average_length"])
    return None


def _bm25_encoder(parameters: Mapping[str, float], average_length: Callable[[], float]) -> Bm25DocumentEncoder:
    Bm25DocumentEncoder(1.0, **parameters)  # what is out of range is said before the collection is read
    return Bm25DocumentEncoder(average_length(), **parameters)
