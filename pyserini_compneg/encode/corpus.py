"""Encodes a collection into files of vectors for ``index``. Several machines can each encode a shard."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pyserini_compneg.documents.collection import (
    VECTOR,
    VECTORS,
    CollectionPart,
    DocumentBlock,
    check_same,
    collection_files,
    fingerprint,
    iter_collection_blocks,
    say_formats,
)
from pyserini_compneg.documents.formats import Format
from pyserini_compneg.documents.passages import check_spaced, passage_texts
from pyserini_compneg.documents.source_documents import (
    SourceDocument,
    UnreadFields,
    fields_beside,
    lead_of,
    text_documents,
)
from pyserini_compneg.documents.vector_files import (
    VECTORS_FILE,
    KnownVectors,
    ShardFile,
    check_output,
    check_same_division,
    read_about,
    shard_file,
    shard_path,
)
from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder, count_terms, mean_length
from pyserini_compneg.encode.document_encoders import document_encoder
from pyserini_compneg.encode.hybrid import BM25, DocumentEncoder, places, split_name, warn_of_english
from pyserini_compneg.encode.models import ModelOptions, model_folder
from pyserini_compneg.lucene import ENGLISH, LANGUAGES
from pyserini_compneg.lucene.index_settings import check_passages
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError, OutputError
from pyserini_compneg.support.existing_work import Existing, ExistingWork, existing_option
from pyserini_compneg.support.options import COUNT, WHOLE, check_options, option
from pyserini_compneg.support.progress import DOCUMENTS, progress, token_rate
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

SHARDS_STAY = "shards of vectors cannot be updated, because a new line moves later lines to other shards"
INSTEAD = "give the changed documents to update, which encodes them for the index, or encode all again with --overwrite"
"""What to do about shards that have to be updated."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncodeSettings(ExistingWork):
    """The settings of encoding a collection.

    Attributes:
        shard_id: The number of the shard: every ``shard_num``-th line of the collection, from line ``shard_id`` on.
        shard_num: The number of shards.
        existing: How to treat an existing file or unfinished work. ``refuse`` raises an OutputError. ``resume``
            continues unfinished work, and raises an OutputError if something has changed since. ``overwrite`` replaces
            the file and discards unfinished work. ``resume or overwrite`` replaces the file and continues unfinished
            work. ``update`` replaces the file, and takes the vectors of documents whose texts have not changed from
            it; unfinished work is continued unless something has changed since.
        fields: The fields that make up a document's text; None for ``contents``, or ``title`` and ``text``.
        collection_format: ``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``; None to detect the format from the
            names and first bytes of the files.
        model_options: How the model is run; None for the defaults.
        language: The language in which ``bm25+MODEL`` analyses the texts; None for English.
        passages: ``{"words": 200, "overlap": 50}`` encodes each text as passages of 200 words, 50 of them also in the
            passage before; None for whole texts.

    Raises:
        ArgumentError: A number is out of its range, ``fields`` is a single text instead of a list, a shard is to be
            updated, or texts of the language cannot be split.
    """

    shard_id: int = option(0, "which shard, from 0 (default 0)", WHOLE, metavar="I")
    shard_num: int = option(1, "number of shards (default 1)", COUNT)
    existing: Literal[Existing, "update"] = existing_option("update")
    fields: Sequence[str] | None = None
    collection_format: Format | None = None
    model_options: ModelOptions | None = None
    language: str | None = option(
        None,
        "language of the texts for the bm25 of bm25+MODEL, as Anserini names it (default en)",
        choices=LANGUAGES,
        metavar="LANGUAGE",
    )
    passages: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        check_options(self)
        check_passages(self.passages)
        if self.passages:
            check_spaced(self.language or ENGLISH)
        if not 0 <= self.shard_id < self.shard_num:
            last = self.shard_num - 1
            raise ArgumentError(f"--shard-id goes from 0 to --shard-num - 1, so to {last}, got {self.shard_id}")
        if self.updates and self.shard_num > 1:
            raise ArgumentError(SHARDS_STAY, remedy=INSTEAD)
        if self.fields is not None:
            object.__setattr__(self, "fields", checked_list("fields", self.fields))

    @property
    def updates(self) -> bool:
        return self.existing == "update"

    def path(self, output: str | Path) -> Path:
        """The file of the shard in a folder."""
        return shard_path(output, self.shard_id, self.shard_num)


def encode_collection(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    settings: EncodeSettings | None = None,
    *,
    model: DocumentEncoder | None = None,
    **options: Any,
) -> Path:
    """Encodes the texts of a collection. The file of vectors is written atomically.

    The lines of the file are JSON, ``{"id", "contents", "vector", "encoder"}`` and the other fields of the document, in
    the order of the collection. With passages, ``vectors`` has the vector of each passage, in place of ``vector``.
    Vectors are saved every few hundred documents, so that a killed run can be resumed.

    Args:
        collection: A file of JSON Lines, of a JSON list, of CSV or of TSV, plain, gzip or xz, or a folder of such
            files.
        output: The folder for the file. It is created if necessary.
        encoder: A model, as a folder or as a name of the Hugging Face hub, or ``bm25+MODEL``.
        settings: The settings; None if the other arguments give them.
        model: A loaded model. Then ``encoder`` only names it.
        **options: The fields of :class:`EncodeSettings`, such as ``existing="overwrite"``.

    Returns:
        The file.

    Raises:
        ArgumentError: See :class:`EncodeSettings`.
        InputError: A document is bad, or there are no documents.
        EncodingError: The model cannot be used.
        DownloadError: The model cannot be downloaded from the hub.
        OutputError: The file exists, unfinished work exists and ``existing`` is ``refuse``, unfinished work has other
            settings, or the folder cannot be written.
    """
    return encode_shard(collection, output, encoder, settings or EncodeSettings(**options), model)


def encode_shard(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    settings: EncodeSettings,
    model: DocumentEncoder | None = None,
    counted: Mapping[str, Any] | None = None,
) -> Path:
    """Encodes one shard; see :func:`encode_collection`.

    ``counted`` contains known counts of the whole collection: its ``sources``, the number of ``documents`` of each
    shard, and the average ``length`` of a document for BM25.
    """
    path, fields = settings.path(output), settings.fields
    check_output(path, settings.may_overwrite)  # these errors come before a model is loaded
    if settings.updates and not path.exists() and any(path.parent.glob("vectors-*-of-*.jsonl.gz")):
        raise OutputError(SHARDS_STAY, where=path.parent, remedy=INSTEAD)
    check_same_division(path)
    files = collection_files(collection, settings.collection_format)
    part = CollectionPart(files, settings.shard_id, settings.shard_num)
    there = _updated(path) if settings.updates else {}
    say_formats(files) if counted is None else check_same(files, counted["sources"])
    keep_inputs(output, collection, *filter(os.path.isdir, places(encoder)))
    keep_inputs(path, *(file.path for file in files))
    # Like an index, updated vectors keep BM25's average length, on which the weights of all documents depend.
    length = counted["length"] if counted else there.get("average_length")
    model = model or _document_encoder(encoder, settings, part, length)
    sizes: dict[str, Any] = {"passages": dict(settings.passages)} if settings.passages else {}
    about = {"encoder": encoder, "settings": dict(model.settings), "signed": model.signed}
    about |= {"impact_scale": model.impact_scale} | sizes
    about |= {"concepts": list(model.concepts)} if model.concepts else {}
    _check_other_shards(path, about, settings.may_overwrite and not settings.updates)
    plan = {"model": dict(model.settings), "encoder": encoder, "fields": fields, "sources": fingerprint(files)} | sizes
    with closing(KnownVectors(path)) if settings.updates else nullcontext() as known:
        # A bad document is reported now, not after hours of encoding the documents before it.
        total = counted["documents"][part.number] if counted else sum(count_documents(part, fields, known=known))
        _check_some(total, part, collection)
        bar = progress(None, total, " docs", "encoding", summary=True)
        with bar, token_rate(bar), shard_file(path, plan, settings, settings.updates) as target:
            bar.initial = bar.n = target.documents
            for lines in _encoded(target, part, model, encoder, settings, known):
                bar.update(lines)
            with atomic_writer(path.with_name(VECTORS_FILE), "make room, or give another --output") as handle:
                handle.write(json.dumps(about, indent=2) + "\n")
        if known:
            _logger.info("%s: %s", path, known.summary)
    return path


def _check_some(documents: int, part: CollectionPart, collection: str | Path) -> None:
    if not documents:
        which = f" in shard {part.number} of {part.shards}" if part.shards > 1 else ""
        raise InputError(f"no documents{which}", where=collection)


def _updated(path: Path) -> dict[str, Any]:
    """The settings of the vectors that are updated."""
    about = read_about(path.with_name(VECTORS_FILE))
    if not about and path.exists():
        said = f"cannot be updated: there is no {VECTORS_FILE} that says how it was made"
        raise OutputError(said, where=path, remedy="encode all again with --overwrite")
    return dict(about.get("settings", {}))


def _document_encoder(
    encoder: str, settings: EncodeSettings, part: CollectionPart, length: float | None
) -> DocumentEncoder:
    language = chosen_language(encoder, settings)

    def bm25() -> Bm25DocumentEncoder:
        """The average length is computed over all shards, so that they can make one index."""
        whole = CollectionPart(part.files)
        count = partial(count_terms, whole, settings.fields, language=language, passages=settings.passages or {})
        return Bm25DocumentEncoder(mean_length([count()]) if length is None else length, language=language)

    return document_encoder(encoder, settings.model_options, bm25)


def chosen_language(encoder: str, settings: EncodeSettings) -> str:
    """The language of the texts. Refuses one for a model, and warns of a model that does not know it. Refuses BM25."""
    if encoder == BM25:
        model_folder(encoder)  # says what takes it
    if settings.language is not None and not split_name(encoder)[0]:
        raise EncodingError(
            "has a vocabulary of its own, so --language, which is for bm25+MODEL, has no use", where=encoder
        )
    language = settings.language or ENGLISH
    warn_of_english(encoder, language)
    return language


def count_documents(
    part: CollectionPart, fields: Sequence[str] | None = None, shards: int = 1, known: KnownVectors | None = None
) -> list[int]:
    """The number of documents of a part in each of ``shards`` shards. A bad document raises an InputError."""
    unread = UnreadFields("name all fields of the text with --fields, or rename them")
    counts = [0] * shards
    with progress(None, None, DOCUMENTS, "counting documents") as bar:
        for block in iter_collection_blocks(part):
            documents = _documents(block, fields)
            for number, document in documents.items():
                unread.add(document.docid, document.unread)
                counts[(block.first_line + number - 1) % shards] += 1
                if known:
                    known.count(document.docid, document.text or "")
            bar.update(len(documents))
    unread.warn()
    return counts


def _check_other_shards(path: Path, about: Mapping[str, Any], overwrite: bool) -> None:
    """Refuses a folder with vectors of another model, or of the same model with other settings."""
    others = [file for file in path.parent.glob("vectors-*.jsonl.gz") if file != path]
    there = read_about(path.with_name(VECTORS_FILE)) if others or not overwrite else None
    if there and about["settings"].get("model"):  # the folder of the model may differ between machines
        there["encoder"] = about["encoder"]
    if there and there != about:
        raise OutputError(
            f"holds vectors of {there['encoder']!r} with other settings",
            where=path.parent,
            remedy="give another --output",
        )


def _encoded(
    target: ShardFile,
    part: CollectionPart,
    model: DocumentEncoder,
    name: str,
    settings: EncodeSettings,
    known: KnownVectors | None,
) -> Iterator[int]:
    """Encodes the documents that are not in the file yet. Yields the number of documents of each block."""
    fields, passages = settings.fields, settings.passages or {}
    read: deque[tuple[DocumentBlock, list[SourceDocument], list[list[dict[str, float]] | int]]] = deque()

    def texts() -> Iterator[list[str]]:
        for block in iter_collection_blocks(part, target.position, model.most_lines):
            documents = list(_documents(block, fields).values())
            found: list[list[dict[str, float]] | int] = []  # vectors, or the number of texts that are encoded
            asked: list[str] = []
            for one in documents:
                vectors = known.find(one.docid, one.text or "") if known else None
                split = passage_texts(one, passages, fields) if vectors is None else []
                found.append(len(split) if vectors is None else vectors)
                asked += split
            read.append((block, documents, found))
            yield asked

    for encoded in model.stream(texts()):
        block, documents, found = read.popleft()
        made = iter(encoded)
        each = (list(islice(made, one)) if isinstance(one, int) else one for one in found)
        vectors = ({VECTORS: one} if passages else {VECTOR: one[0]} for one in each)
        target.add(block.end, [_line(*pair, name, fields) for pair in zip(documents, vectors, strict=True)])
        yield len(documents)


def _documents(block: DocumentBlock, fields: Sequence[str] | None) -> dict[int, SourceDocument]:
    documents, problems = text_documents(block, fields)
    if problems:
        raise InputError(problems[0])
    return documents


def _line(document: SourceDocument, vectors: Mapping[str, Any], name: str, fields: Sequence[str] | None) -> str:
    text: dict[str, Any] = {"contents": document.text}
    if VECTORS in vectors and not fields and lead_of(document.record):  # the title is not in the passages' places
        text = {field: document.record[field] for field in ("title", "text")}
    record = {"id": document.docid, **text, **vectors, "encoder": name}
    line = json.dumps(record | fields_beside(document.record, fields), ensure_ascii=False)
    if "Infinity" in line:  # 1e999 is JSON, but what Python makes of it is not
        line = json.dumps(json.loads(line, parse_constant=lambda _: None), ensure_ascii=False)
    return line
