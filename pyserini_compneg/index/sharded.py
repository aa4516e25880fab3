"""Builds an index in shards from a collection. Each shard is an index of a part of the documents."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pyserini_compneg.documents.collection import (
    CollectionPart,
    Fingerprint,
    check_same,
    collection_files,
    fields_found,
    fingerprint,
    has_vectors,
    iter_collection_blocks,
    parts,
    say_formats,
)
from pyserini_compneg.documents.formats import CollectionFile, Format
from pyserini_compneg.documents.source_documents import source_document
from pyserini_compneg.documents.vector_files import check_number_of_shards
from pyserini_compneg.encode import BM25
from pyserini_compneg.encode.bm25 import count_terms, mean_length
from pyserini_compneg.encode.document_encoders import model_settings
from pyserini_compneg.encode.hybrid import split_name
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.index.build import (
    Build,
    build_part,
    check_no_vectors,
    check_place,
    checked_build,
    unfinished_length,
    with_passages,
)
from pyserini_compneg.index.index_folder import drop_unfinished, keep_unfinished, new_index_folder
from pyserini_compneg.lucene import IndexSettings, Manifest, analysis_settings, is_index
from pyserini_compneg.lucene.passage_reader import document_of
from pyserini_compneg.lucene.shards import (
    ShardEntry,
    checked_shard,
    common_content,
    shard_checksum,
    shard_name,
    whole_manifest,
    write_shards,
)
from pyserini_compneg.support.errors import IndexReadError, InputError, OutputError
from pyserini_compneg.support.files import decoded_line
from pyserini_compneg.support.progress import Runner, in_turn


def build_sharded_index(
    collection: str | Path,
    index: str | Path,
    shards: int,
    encoder: str | None = None,
    *,
    run: Runner = in_turn,
    collection_format: Format | None = None,
    model_options: ModelOptions | None = None,
    bm25: Mapping[str, float | str] | None = None,
    **settings: Any,
) -> Manifest:
    """Builds an index in shards. Searches give the same results as on one index, with the same scores to the last bit.

    If there are at least as many files as shards, each shard gets whole files; otherwise the lines are divided.
    Complete shards, and checkpoints of incomplete shards, are kept when the build is killed.

    Args:
        collection: See :func:`build_index`.
        index: The folder to create.
        shards: The number of shards.
        encoder: See :func:`build_index`.
        run: Runs the builds of the shards. All processes must reach the collection and the folder by the same paths.
        collection_format: See :func:`build_index`.
        model_options: See :func:`build_index`.
        bm25: See :func:`build_index`.
        **settings: See :func:`build_index`.

    Returns:
        The manifest of the whole index.

    Raises:
        ArgumentError: The number of shards is below 1 or above ``MOST_SHARDS``.
        InputError: A document is bad, an id is given twice, a shard has no document with a term, no document has a
            filter field, or documents contain vectors and no encoder is given.
        ClusterError: Another process has read different files.
        IndexReadError: A shard is not where it was built.
        OutputError: See :func:`build_index`.
    """
    check_number_of_shards(shards)
    build = checked_build(encoder or BM25, model_options, bm25, settings)
    fields = build.settings.filter_fields
    files = collection_files(collection, collection_format, fields)
    if encoder is None:
        check_no_vectors(files)
    encoder = build.encoder
    build = with_passages(build, files)
    whole = build.settings
    target = check_place(index, files, whole)
    say_formats(files)
    if len(files) < shards:  # each shard gets a part of the lines
        _check_lines(collection, files, shards)
    collection, chosen = os.path.realpath(collection), parts(files, shards)
    prints = dict(zip(files, fingerprint(files), strict=True))
    sources = [*prints.values()]
    model = _model_settings(files, encoder, model_options, run)
    if fields:
        found = run(fields_found, [(part, fields) for part in chosen], "looking for filter fields")
        _check_fields(collection, fields, set().union(*found))
    length = None
    if encoder == BM25 or (model and split_name(encoder)[0]):
        length = unfinished_length(index, encoder, build, sources) if whole.may_resume else None
        tasks = [(part, None, whole.on_error == "skip", build.language, whole.passages) for part in chosen]
        length = length or mean_length(run(count_terms, tasks, "counting terms"))
    plan: dict[str, Any] = {"encoder": encoder, "settings": {"average_length": length, **model}}
    plan |= analysis_settings(build.language)
    plan |= {"sources": sources, "shards": shards, "bm25": build.bm25}
    plan |= {name: value for name, value in asdict(whole).items() if name not in ("threads", "existing", "shard")}
    shard_settings = replace(whole, shard=True, existing="resume")
    with new_index_folder(target, plan, whole) as folder:
        keep_unfinished(folder, plan)
        try:
            seen = [(part, [prints[file] for file in part.files]) for part in chosen]
            return _fill(folder, (collection, files), seen, run, replace(build, settings=shard_settings, length=length))
        except InputError:  # a changed collection is a new build
            drop_unfinished(folder)
            raise


def _check_lines(collection: str | Path, files: Sequence[CollectionFile], shards: int) -> None:
    lines = (
        line for block in iter_collection_blocks(CollectionPart(files)) for _, line in block.numbered() if line.strip()
    )
    if (found := sum(1 for _ in itertools.islice(lines, shards))) < shards:
        said = f"{shards} shards need as many documents, got {found}"
        raise InputError(said, where=collection, remedy="build fewer shards")


def _model_settings(
    files: Sequence[CollectionFile], encoder: str, options: ModelOptions | None, run: Runner
) -> Mapping[str, float | int | str]:
    """The settings that determine a model's vectors; empty if no model is run."""
    if encoder == BM25 or has_vectors(files) is not False:
        return {}
    return run(model_settings, [(encoder, options)], "reading the model")[0]


def _fill(
    folder: Path,
    source: tuple[str, Sequence[CollectionFile]],
    chosen: Sequence[tuple[CollectionPart, Fingerprint]],
    run: Runner,
    build: Build,
) -> Manifest:
    """Builds the shards in a folder, checks them together and writes their list."""
    names = [shard_name(number, len(chosen)) for number in range(len(chosen))]
    tasks = [(source[0], str(folder / name), *seen, build) for name, seen in zip(names, chosen, strict=True)]
    built = run(_build_shard, tasks, "indexing")
    manifests = {entry.path: _shared(folder, entry, host) for entry, host in built}
    checked = (*source, [str(folder / name) for name in names], build.settings)
    run(_check_together, [checked], "checking")
    for left in folder.glob(".*"):  # left by a process that was killed after its shard was complete
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    whole = whole_manifest(folder, manifests)
    write_shards(folder, [entry for entry, _ in built])
    return whole


def _shared(folder: Path, entry: ShardEntry, host: str) -> Manifest:
    """The manifest of a shard. Checks that this process sees the same shard as the node that built it."""
    try:
        return checked_shard(folder / entry.path, entry)
    except IndexReadError as error:
        error.remedy = f"the node {host} built it, and all nodes must reach the same paths"
        raise


def _build_shard(
    collection: str, folder: str, part: CollectionPart, sources: Fingerprint, build: Build
) -> tuple[ShardEntry, str]:
    """Builds a shard unless it exists. Returns it with the name of this machine."""
    target = Path(folder)
    if not is_index(target):
        check_same(part.files, sources)
        try:
            build_part(collection, part, target, build)
        except OutputError:
            if not is_index(target):  # a process that seemed lost may just have finished the shard
                raise
    manifest = Manifest.read(target)
    return ShardEntry(target.name, manifest.documents if manifest else 0, shard_checksum(target)), socket.gethostname()


def _check_together(
    collection: str, files: Sequence[CollectionFile], folders: Sequence[str], settings: IndexSettings
) -> None:
    """Refuses an id that two shards share, and a filter field that no document has."""
    twice, found = common_content(folders, settings.filter_fields)
    _check_fields(collection, settings.filter_fields, found)
    if twice is not None:
        twice = document_of(twice)[0] if settings.passages else twice
        places = list(itertools.islice(_places(files, twice), 2))
        first, second = places if len(places) == 2 else ("a line", collection)
        raise InputError(f"document id {twice!r} was given at {first} already", where=second)


def _check_fields(collection: str, fields: Sequence[str], found: Collection[str]) -> None:
    if missing := [field for field in fields if field not in found]:
        said = f"no document has the filter field {missing[0]!r}"
        raise InputError(said, where=collection, remedy="leave it out")


def _places(files: Sequence[CollectionFile], docid: str) -> Iterator[str]:
    for block in iter_collection_blocks(CollectionPart(files)):
        for place, line in block.numbered():
            with suppress(InputError):
                text = decoded_line(line, place)
                if text and not text.isspace() and source_document(text, place).docid == docid:
                    yield place
