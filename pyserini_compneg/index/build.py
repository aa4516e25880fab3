"""Builds an index from the files of a collection: reads them, encodes texts, and continues a build that was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.compose import Query, query_pairs
from pyserini_compneg.compose.queries import parsed_queries
from pyserini_compneg.documents.collection import (
    CollectionPart,
    DocumentBlock,
    Documents,
    fingerprint,
    has_vectors,
    is_iterable,
    iter_collection_blocks,
    opened_collection,
    say_formats,
)
from pyserini_compneg.documents.formats import CollectionFile, Format
from pyserini_compneg.documents.passages import check_spaced, shown_passages
from pyserini_compneg.documents.vector_files import VECTORS_FILE, read_about
from pyserini_compneg.encode import BM25, Bm25DocumentEncoder, query_encoder
from pyserini_compneg.encode.bm25 import IMPACT_SCALE, count_terms, mean_length
from pyserini_compneg.encode.document_encoders import document_encoder
from pyserini_compneg.encode.hybrid import model_parts, needs_statistics, split_name, warn_of_english, with_places
from pyserini_compneg.encode.models import LATENT, ModelOptions
from pyserini_compneg.index.index_folder import check_target, clear_stale, unfinished_plan
from pyserini_compneg.index.indexer import ImpactIndexer
from pyserini_compneg.index.sources import Source, TextSource, VectorSource
from pyserini_compneg.lucene import (
    ENGLISH,
    INDEX_CONCEPTS,
    QUERY_TOKENIZER,
    IndexSettings,
    Manifest,
    checked_language,
)
from pyserini_compneg.lucene.manifest import write_json
from pyserini_compneg.lucene.passage_reader import document_of
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError
from pyserini_compneg.support.progress import progress, token_rate

CHECKPOINT_SECONDS = 30.0
"""A killed build loses at most this much work, in seconds. A checkpoint takes well below a second."""


@dataclass(frozen=True, slots=True)
class Build:
    """The settings of a build, without the collection. They are sent to the processes of a cluster.

    The average length is the mean number of terms in a document of the whole collection, also when a shard is built.
    """

    encoder: str
    model_options: ModelOptions | None
    bm25: Mapping[str, Any]
    settings: IndexSettings
    length: float | None = None

    @property
    def language(self) -> str:
        return str(self.bm25.get("language", ENGLISH))


def build_index(
    collection: Documents,
    index: str | Path,
    encoder: str | None = None,
    *,
    collection_format: Format | None = None,
    model_options: ModelOptions | None = None,
    bm25: Mapping[str, float | str] | None = None,
    **settings: Any,
) -> Manifest:
    """Builds an impact index of a collection. The complete index appears atomically under its name.

    Args:
        collection: A file of JSON Lines, of a JSON list, of CSV or of TSV, plain, gzip or xz, or of parquet; or a
            folder of such files, read in the order of their names, without those that have queries or judgements by
            their names. Or documents as dictionaries, with the fields of a line of JSON Lines, such as
            ``{"id": "d1", "contents": "birds fly"}``; they are written to a temporary file for the build, so a killed
            build of them starts again. In these, numbers and arrays may be numpy's; dates and times become texts of
            ISO 8601, UUIDs texts, decimals numbers, and durations seconds; an empty cell of pandas (NaN, NaT, NA)
            counts as a field that the document does not have. Or the bytes of JSON Lines.
        index: The folder to create.
        encoder: The encoder of the documents' texts: ``bm25`` (the default), a model (a folder, or a name of the
            Hugging Face hub), or both, ``bm25+MODEL``. Documents that contain vectors need it: it is the name of the
            model that made the vectors, for the manifest only, or ``bm25`` to index the texts beside them.
        collection_format: The format of the files, ``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``; None to detect
            the format from their names and first bytes.
        model_options: The options for running a model; None for the defaults.
        bm25: BM25's ``k1`` and ``b``, if they are not 0.9 and 0.4, and the ``language`` of the texts, if it is not
            ``en``: one of :data:`~pyserini_compneg.lucene.LANGUAGES`.
        **settings: Fields of :class:`IndexSettings`, such as ``impact_scale`` and ``existing``.

    Returns:
        The manifest of the index.

    Raises:
        ArgumentError: A parameter of BM25 is given outside of ``bm25``, the language is unknown, or a setting is out of
            range.
        InputError: A document is bad, an id is given twice, no document has a term, or documents contain vectors and no
            encoder is given.
        EncodingError: A model cannot be used, or an option does not apply to the encoder.
        DownloadError: A model cannot be downloaded from the hub.
        OutputError: The folder exists and must not be replaced, or cannot be written.
    """
    build = checked_build(encoder or BM25, model_options, bm25, settings)
    if is_iterable(collection):
        check_place(index, (), build.settings)  # before the program makes its documents
    with opened_collection(collection, collection_format, build.settings.filter_fields) as files:
        say_formats(files)
        if encoder is None:
            check_no_vectors(files)
        return build_part(files[0].label or str(collection), CollectionPart(files), index, with_passages(build, files))


def check_no_vectors(files: Sequence[CollectionFile]) -> None:
    """Refuses documents with vectors where no encoder is named, since BM25 would read only the texts beside them."""
    if has_vectors(files):
        model = read_about(files[0].path.parent / VECTORS_FILE).get("encoder", "MODEL")
        what = "documents have vectors, and nothing says whether to index these or the texts beside them"
        remedy = f"give --encoder {model} (encoder=), which made the vectors, or --encoder bm25 for the texts"
        raise InputError(what, where=files[0].label or files[0].path, remedy=remedy)


def checked_build(
    encoder: str, options: ModelOptions | None, bm25: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> Build:
    """The build of these settings. Warns of a model that does not know the language."""
    for name in sorted({"k1", "b", "language"} & settings.keys()):
        remedy = 'give all as bm25={"k1": 0.9, "b": 0.4, "language": "en"}'
        raise ArgumentError(f"{name} is not a separate argument", remedy=remedy)
    if unknown := sorted({*(bm25 or ())} - {"k1", "b", "language"}, key=str):
        raise ArgumentError(f"bm25 has no parameter {unknown[0]!r}", remedy="it has k1, b and language")
    build = Build(encoder, options, bm25 or {}, IndexSettings(**settings))
    if bm25 and encoder != BM25 and not split_name(encoder)[0]:
        raise EncodingError("k1, b and language are parameters of bm25, not of this encoder", where=encoder)
    if "" in model_parts(encoder) and build.settings.impact_scale not in (None, IMPACT_SCALE):
        what = f"the impacts of latents have the scale of bm25, {IMPACT_SCALE:g}, not {build.settings.impact_scale:g}"
        raise EncodingError(what, where=encoder, remedy="leave out --impact-scale")
    warn_of_english(encoder, checked_language(build.language))
    if build.settings.passages:
        check_spaced(build.language)
    return build


def asked_pairs(
    queries: Sequence[Query],
    collection: Documents,
    encoder: str = BM25,
    *,
    model_options: ModelOptions | None = None,
    source: str | Path = "",
) -> tuple[str, ...]:
    """The pairs that an index of a collection needs for the conjunctions of queries, for ``pairs`` of its settings.

    Args:
        queries: Expressions, which are composed with the encoder of the index, and composed queries.
        collection: The documents to be indexed; see :func:`build_index`. Vectors of ``encode`` name the head and the
            precision.
        encoder: The encoder of the index.
        model_options: How the model is run.
        source: The file of the queries, for messages.

    Raises:
        EncodingError: The encoder weighs query terms by the statistics of an index, or there is no such model.
        InputError: No query has an AND.
    """
    needs_encoder = any(query.composed is None for query in parsed_queries(queries))
    if needs_encoder and needs_statistics(encoder):
        what = f"{encoder} weighs the terms of these queries by the statistics of an index, which is not built yet"
        remedy = "build it without pairs (--pairs-from), and give the queries that compose --index makes with it"
        raise EncodingError(what, where=source, remedy=remedy)
    settings: dict[str, Any] = {}
    if not is_iterable(collection):
        folder = Path(collection)
        settings = read_about((folder if folder.is_dir() else folder.parent) / VECTORS_FILE).get("settings", {})
    options = (model_options or ModelOptions()).for_index(settings)
    pairs = query_pairs(queries, query_encoder(encoder, None, options) if needs_encoder else None)
    if not pairs:
        raise InputError(
            "no query has an AND, so there are no pairs", where=source, remedy="leave out pairs (--pairs-from)"
        )
    return pairs


def with_passages(build: Build, files: Sequence[CollectionFile]) -> Build:
    """The build with the sizes of passages that ``encode`` has noted beside vectors. Refuses other ones."""
    folder, asked = files[0].path.parent, build.settings.passages
    sizes = {} if build.encoder == BM25 else read_about(folder / VECTORS_FILE).get("passages", {})
    if not sizes:
        return build
    if asked not in ({}, sizes):
        what = f"the passages of the vectors are {shown_passages(sizes)}, not {shown_passages(asked)}"
        raise InputError(what, where=folder, remedy="leave out passages")
    return replace(build, settings=replace(build.settings, passages=sizes))


def build_part(collection: str | Path, part: CollectionPart, index: str | Path, build: Build) -> Manifest:
    """Builds an index of a part of a collection. The part may be the whole collection."""
    encoder, bm25, settings = build.encoder, build.bm25, build.settings
    share_of_lines = [[part.number, part.shards]] if settings.shard else []
    sources = [*fingerprint(part.files), *share_of_lines]
    target = check_place(index, part.files, settings)
    encoder = absolute_name(encoder)

    def average() -> float:
        known = unfinished_length(target, encoder, build, sources) if settings.may_resume else None
        skip = settings.on_error == "skip"
        return build.length or known or mean_length([count_terms(part, None, skip, build.language, settings.passages)])

    source = _source(part.files, encoder, build.model_options, partial(_bm25_encoder, bm25, average), settings)
    if bm25 and isinstance(source, VectorSource):
        raise EncodingError("the documents bring their vectors, so k1, b and language have no use", where=encoder)
    scale = source.impact_scale if settings.impact_scale is None else settings.impact_scale
    settings = replace(settings, impact_scale=scale, signed=settings.signed or source.signed)
    bar = progress(None, None, " passages" if settings.passages else " docs", "indexing", summary=True)
    indexer = _CollectionIndexer(collection, part, source, index, encoder, settings, sources)
    with bar, token_rate(bar), indexer:
        indexer.add_collection(bar)
    return indexer.manifest


def absolute_name(encoder: str) -> str:
    """The encoder with the absolute path of its model, if that is a folder, so searches from other folders find it.

    A path that would be read as two models is refused.
    """

    def absolute(place: str) -> str:
        folder = os.path.expanduser(place)  # the shell does not expand ~ after bm25+
        return os.path.realpath(folder) if os.path.isdir(folder) else place

    made, parts = with_places(encoder, absolute), partial(with_places, change=lambda _: "")
    if parts(made) != parts(encoder):
        what = f"the place of its model makes {made!r} of it, in which +{LATENT} begins the name of a latent model"
        raise EncodingError(what, where=encoder, remedy="rename the folder")
    return made


def check_place(index: str | Path, files: Sequence[CollectionFile], settings: IndexSettings) -> Path:
    """The folder of an index without symbolic links, after a check that a build may write the folder."""
    target = Path(os.path.realpath(index))
    if inside := next((path for path, *_ in files if path.resolve().is_relative_to(target)), None):
        raise InputError(f"is in the folder of the index, {index}", where=inside, remedy="give another folder")
    clear_stale(target)
    check_target(target, settings.may_overwrite)  # check before reading the collection
    return target


def _source(
    files: Sequence[CollectionFile],
    encoder: str,
    model_options: ModelOptions | None,
    make_bm25: Callable[[], Bm25DocumentEncoder],
    settings: IndexSettings,
) -> Source:
    is_bm25 = encoder == BM25
    brings_vectors = not is_bm25 and has_vectors(files)  # None if no document can be read
    if model_options is not None and (is_bm25 or brings_vectors):
        said = "no model is run, so options of one, such as --precision, have no use"
        raise EncodingError(said, where=encoder)
    if brings_vectors is False:
        return TextSource(document_encoder(encoder, model_options, make_bm25), settings)
    return VectorSource(files, encoder, settings)


class _CollectionIndexer(ImpactIndexer):
    """An indexer of files. It knows the file and the line of every document."""

    def __init__(
        self,
        collection: str | Path,
        part: CollectionPart,
        source: Source,
        index: str | Path,
        encoder: str,
        options: IndexSettings,
        sources: Any,
    ) -> None:
        super().__init__(index, encoder, options, settings=source.settings, sources=sources)
        self._name = str(collection)
        self._part = part
        self._source = source

    def add_collection(self, bar: Any) -> None:
        """Adds all documents after the last checkpoint, and moves the progress bar."""
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
        if tokenizer := self._source.query_tokenizer:
            tokenizer.save(self._folder / QUERY_TOKENIZER)
        if concepts := self._source.concepts:
            write_json(self._folder / INDEX_CONCEPTS, concepts)
        if self.position:
            self.checkpoint((len(self._part.files), 1))  # the search for duplicates can take a long time

    def _add(self, blocks: Iterable[DocumentBlock]) -> Iterator[tuple[DocumentBlock, int]]:
        """Encodes and adds blocks. Yields each block that the indexer has taken, with its number of documents."""
        for block, layers, problems in self._source.encoded(blocks):
            self._report(problems)
            for layer in layers:
                self.add_lines(layer.lines, block.name, block.first_line + layer.start, layer.sources)
            yield block, sum(bool(line.strip()) for layer in layers for line in layer.lines.split(b"\n"))

    def _check_duplicates(self) -> None:
        """Refuses a repeated id, or keeps its first document. Reads the collection again to find the lines."""
        duplicates = self._writer.duplicate_ids() if self._skip else self._writer.duplicate_ids(1)
        if not duplicates:
            return
        if self._skip:
            self._writer.delete(duplicates, merge=not (self._options.optimize or self._options.reorder))
        if self._options.passages:
            duplicates = sorted({document_of(passage)[0] for passage in duplicates})
        first, again = self._first_documents(duplicates)
        if self._skip:
            for _ in self._add(again):
                pass
            self.drain()
        # Without skipping, a repeat that is still there has raised an error by now.
        lost = [docid for docid in duplicates if docid not in first] if self._skip else duplicates
        if lost:
            said = f"document id {lost[0]!r} was given twice and is not any more"
            raise InputError(said, where=self._name, remedy="the collection has changed")

    def _first_documents(self, docids: Sequence[str]) -> tuple[dict[str, str], list[DocumentBlock]]:
        """The place of the first document with each id, and blocks of these documents alone. Reports the repeats."""
        first: dict[str, str] = {}
        blocks: list[DocumentBlock] = []
        for block in iter_collection_blocks(self._part):
            lines = block.lines.split(b"\n")
            kept = [b""] * len(lines)
            for number, docid in self._writer.find(self._source.identified(block), docids):
                position = f"{block.name}:{block.first_line + number}"
                if docid in first:
                    self._report([f"{position}: document id {docid!r} was given at {first[docid]} already"])
                else:
                    first[docid] = position
                    kept[number] = lines[number]
            if any(kept):
                blocks.append(block._replace(lines=b"\n".join(kept), faults={}))
        return first, blocks


def unfinished_length(index: str | Path, encoder: str, build: Build, sources: Any) -> float | None:
    """The average length of documents that an unfinished build of these sources has computed, or None."""
    plan = unfinished_plan(index)
    asked = (encoder, build.language, build.settings.passages, sources)
    if plan and asked == (plan["encoder"], plan.get("language", ENGLISH), plan.get("passages", {}), plan["sources"]):
        return float(plan["settings"]["average_length"])
    return None


def _bm25_encoder(parameters: Mapping[str, Any], average_length: Callable[[], float]) -> Bm25DocumentEncoder:
    Bm25DocumentEncoder(1.0, **parameters)  # check the range before reading the collection
    return Bm25DocumentEncoder(average_length(), **parameters)
