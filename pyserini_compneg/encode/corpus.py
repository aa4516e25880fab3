"""Encodes a collection to files of vectors, which ``index`` takes. Several machines can each encode a shard."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_compneg.documents.collection import (
    Block,
    Fingerprint,
    Part,
    SourceDocument,
    check_same,
    collection_files,
    fingerprint,
    iter_collection_blocks,
    say_formats,
    text_documents,
)
from pyserini_compneg.documents.formats import CollectionFile, Format
from pyserini_compneg.documents.unread_fields import UnreadFields
from pyserini_compneg.documents.vector_files import (
    VECTORS_FILE,
    Shard,
    ShardFile,
    check_output,
    check_same_division,
    read_about,
    shard_file,
)
from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder, average_length
from pyserini_compneg.encode.encoder import DocumentEncoder
from pyserini_compneg.encode.hybrid import HybridDocumentEncoder, split_name
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import InputError, OutputError
from pyserini_compneg.support.progress import DOCUMENTS, progress
from pyserini_compneg.support.staging import atomic_writer, keep_inputs


class Counted(NamedTuple):
    """What is known of a whole collection before a shard of it is encoded.

    Attributes:
        sources: The fingerprint of its files.
        documents: How many documents each shard has.
        length: BM25's average length of a document, for ``bm25+MODEL``.
    """

    sources: Fingerprint
    documents: Sequence[int]
    length: float | None = None


def encode_collection(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    *,
    model: DocumentEncoder | None = None,
    model_options: ModelOptions | None = None,
    shard: Shard = Shard(),  # noqa: B008  # it is immutable
    fields: Sequence[str] | None = None,
    collection_format: Format | None = None,
    overwrite: bool = False,
    resume: bool = False,
    counted: Counted | None = None,
) -> Path:
    """Encodes the texts of a collection. The file of their vectors appears complete, or not at all.

    Its lines are JSON, ``{"id", "contents", "vector", "encoder"}``, in the order of the collection. Vectors are saved
    every few hundred documents, so that a killed run can be resumed.

    Args:
        collection: A file of JSON Lines, of a JSON list, of CSV or of TSV, plain or gzip, or a folder of such files.
        output: The folder for the file; made if there is none.
        encoder: A model, as a folder or as a name of the Hugging Face hub, or ``bm25+MODEL``.
        model: The model if it is loaded already; ``encoder`` is only its name then.
        model_options: How it is run; None for the defaults.
        shard: Which part of the collection is encoded.
        fields: The fields that make a document's text; by default ``contents``, or ``title`` and ``text``.
        collection_format: Which of these it is, ``jsonl``, ``json``, ``csv`` or ``tsv``; None to tell by its name and
            by how it begins.
        overwrite: Replace an existing file, and discard unfinished work.
        resume: Continue unfinished work, if there is any.
        counted: What is known of the whole collection already; None to count and check it first.

    Returns:
        The file.

    Raises:
        ArgumentError: A single field that is no list.
        InputError: A bad document, or none at all.
        EncodingError: A model that cannot be used.
        DownloadError: A model that cannot be downloaded from the hub.
        OutputError: The file exists; there is unfinished work, and neither ``overwrite`` nor ``resume`` is given, or it
            has other settings; or the folder cannot be written.
    """
    path = Path(output) / shard.file_name
    fields = None if fields is None else checked_list("fields", fields)
    check_output(path, overwrite)  # these errors come before a model is loaded
    check_same_division(path)
    files = collection_files(collection, collection_format)
    if counted is not None:
        check_same(files, counted.sources)
    else:
        say_formats(files)
    hybrid, name = split_name(encoder)
    keep_inputs(output, collection, *filter(os.path.isdir, [name]))
    keep_inputs(path, *(file.path for file in files))
    if model is None:
        from pyserini_compneg.encode.neural import ModelDocumentEncoder, load_checkpoint

        model = ModelDocumentEncoder(load_checkpoint(name, model_options), model_options)
        if hybrid:  # the average is that of all shards, so that they make one index
            length = counted.length if counted else None
            model = HybridDocumentEncoder(Bm25DocumentEncoder(length or average_length(files, fields)), model)
    about = {"encoder": encoder, "settings": dict(model.settings), "signed": model.signed}
    about |= {"impact_scale": model.impact_scale}
    _check_other_shards(path, about, overwrite)
    plan = {"model": dict(model.settings), "encoder": encoder, "fields": fields, "sources": fingerprint(files)}
    # A bad document is reported now, not after hours of encoding the documents before it.
    total = counted.documents[shard.number] if counted else sum(count_documents(Part(files, shard), fields))
    if not total:
        where = f" in shard {shard.number} of {shard.count}" if shard.count > 1 else ""
        raise InputError(f"{collection}: no documents{where}")
    bar = progress(None, total, " docs", "encoding", summary=True)
    with bar, shard_file(path, json.loads(json.dumps(plan)), overwrite, resume) as target:
        bar.initial = bar.n = target.documents
        for lines in _encoded(target, files, model, encoder, shard, fields):
            bar.update(lines)
        with atomic_writer(path.with_name(VECTORS_FILE), "make room, or give another --output") as handle:
            handle.write(json.dumps(about, indent=2) + "\n")
    return path


def count_documents(part: Part, fields: Sequence[str] | None = None, shards: int = 1) -> list[int]:
    """How many documents of a part of a collection are in each of so many shards.

    Args:
        part: A collection, or a part of one.
        fields: As for :func:`encode_collection`.
        shards: The number of shards.

    Raises:
        InputError: A bad document.
    """
    unread = UnreadFields("name all fields of the text with --fields, or rename them")
    counts = [0] * shards
    with progress(None, None, DOCUMENTS, "counting documents") as bar:
        for block in iter_collection_blocks(part.files, shard=part.lines):
            documents = _documents(block, fields)
            for number, document in documents.items():
                unread.add(document.docid, document.unread)
                counts[(block.first_line + number - 1) % shards] += 1
            bar.update(len(documents))
    unread.warn()
    return counts


def _check_other_shards(path: Path, about: Mapping[str, Any], overwrite: bool) -> None:
    """Makes sure that all vectors of a folder are of one model with the same settings."""
    others = [file for file in path.parent.glob("vectors-*.jsonl.gz") if file != path]
    there = read_about(path.with_name(VECTORS_FILE)) if others or not overwrite else None
    if there and about["settings"].get("model"):  # each machine may have the model in a folder of its own
        there["encoder"] = about["encoder"]
    if there and there != about:
        raise OutputError(
            f"{path.parent}: holds vectors of {there['encoder']!r} with other settings; give another --output"
        )


def _encoded(
    target: ShardFile,
    files: Sequence[CollectionFile],
    model: DocumentEncoder,
    name: str,
    shard: Shard,
    fields: Sequence[str] | None,
) -> Iterator[int]:
    """Encodes the documents that are not yet in the file; yields how many each block has."""
    read: deque[tuple[Block, list[SourceDocument]]] = deque()

    def texts() -> Iterator[list[str]]:
        for block in iter_collection_blocks(files, target.position, model.most_lines, shard):
            documents = list(_documents(block, fields).values())
            read.append((block, documents))
            yield [document.text or "" for document in documents]

    for vectors in model.stream(texts()):
        block, documents = read.popleft()
        target.add(block.end, [_line(*pair, name) for pair in zip(documents, vectors, strict=True)])
        yield len(documents)


def _documents(block: Block, fields: Sequence[str] | None) -> dict[int, SourceDocument]:
    documents, problems = text_documents(block, fields)
    if problems:
        raise InputError(problems[0])
    return documents


def _line(document: SourceDocument, vector: Mapping[str, float], name: str) -> str:
    record = {"id": document.docid, "contents": document.text, "vector": vector, "encoder": name}
    return json.dumps(record, ensure_ascii=False)
