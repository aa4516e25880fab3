"""Encodes all shards of a collection in one run, on one machine or on a cluster."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyserini_compneg.documents.collection import collection_files, fingerprint, parts, say_formats
from pyserini_compneg.documents.vector_files import (
    VECTORS_FILE,
    check_number_of_shards,
    check_output,
    check_same_division,
    check_unfinished,
    clear_unfinished,
)
from pyserini_compneg.encode.bm25 import count_terms, mean_length
from pyserini_compneg.encode.corpus import (
    INSTEAD,
    SHARDS_STAY,
    EncodeSettings,
    chosen_language,
    count_documents,
    encode_shard,
)
from pyserini_compneg.encode.document_encoders import model_settings
from pyserini_compneg.encode.hybrid import places, split_name
from pyserini_compneg.lucene import analysis_settings
from pyserini_compneg.support.errors import ArgumentError, InputError, OutputError
from pyserini_compneg.support.existing_work import continues, read_record
from pyserini_compneg.support.progress import Runner, in_turn
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

PLAN_FILE = ".vectors.plan"
"""The file beside the shards that records their origin. It stays after the run, so another run can check it."""

_REMEDY = "give --overwrite to start anew, or another --output"


def encode_in_shards(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    shards: int,
    *,
    run: Runner = in_turn,
    settings: EncodeSettings | None = None,
    **options: Any,
) -> list[Path]:
    """Encodes a collection in shards. Each file equals the file that ``encode_collection`` writes for the shard.

    All documents are read and checked before the first is encoded. With ``existing="overwrite"`` the existing shards
    are deleted after all checks have passed. With ``"resume"`` shards of the same plan are kept, and unfinished shards
    are continued. All processes of ``run`` must reach the collection, the folder and the model by the same paths.
    """
    check_number_of_shards(shards)
    settings, folder = settings or EncodeSettings(**options), Path(output)
    if settings.updates:
        raise ArgumentError(SHARDS_STAY, remedy=INSTEAD)
    chosen = [replace(settings, shard_id=number, shard_num=shards) for number in range(shards)]
    paths = [one.path(output) for one in chosen]
    _check_folder(paths, settings)
    files = collection_files(collection, settings.collection_format)
    say_formats(files)
    language = chosen_language(encoder, settings)
    keep_inputs(output, collection, *filter(os.path.isdir, places(encoder)))
    model_made = run(model_settings, [(encoder, settings.model_options)], "reading the model")[0]
    plan: dict[str, Any] = {"shards": shards, "encoder": encoder, "model": model_made, "fields": settings.fields}
    plan |= analysis_settings(language) | {"passages": settings.passages}
    plan |= {"sources": fingerprint(files)}
    record = _continued(folder, plan, paths, settings.may_overwrite) if settings.may_resume else None
    if record is None:
        counts = run(
            count_documents, [(part, settings.fields, shards) for part in parts(files, shards)], "counting documents"
        )
        documents = [sum(count) for count in zip(*counts, strict=True)]
        if 0 in documents:
            where = f"no documents in shard {documents.index(0)} of {shards}"
            raise InputError(where, where=collection, remedy="encode fewer shards")
        length = None
        if split_name(encoder)[0]:
            counted_parts = [
                (part, settings.fields, False, language, settings.passages or {}) for part in parts(files, shards)
            ]
            length = mean_length(run(count_terms, counted_parts, "counting terms"))
        record = {"plan": plan, "documents": documents, "length": length}
        _begin(folder, record, paths if settings.may_overwrite else ())
    counted = {"sources": plan["sources"], "documents": record["documents"], "length": record["length"]}
    tasks = [(str(collection), str(output), encoder, replace(one, existing="resume"), counted) for one in chosen]
    for path, host in zip(paths, run(_encode_missing, tasks, "encoding"), strict=True):
        if not path.is_file():
            remedy = "all nodes must reach the same paths"
            raise OutputError(f"is not here, but on the node {host}", where=path, remedy=remedy)
    return paths


def _check_folder(paths: Sequence[Path], settings: EncodeSettings) -> None:
    """Refuses outputs that exist and unfinished work, before anything is read."""
    for path in paths:
        check_output(path, settings.may_overwrite or (settings.may_resume and not path.is_dir()))
        if not (settings.may_overwrite or settings.may_resume):
            check_unfinished(path)
    check_same_division(paths[0])


def _continued(folder: Path, plan: Mapping[str, Any], paths: Sequence[Path], overwrite: bool) -> Any:
    """The record of an earlier run of the same plan; None if there is no such run, or if it is to be overwritten."""
    record = read_record(folder / PLAN_FILE)
    if not (record and _is_plan(record)):
        if overwrite or not any(path.exists() for path in paths):
            return None
        raise OutputError("nothing says what its shards are made of", where=folder, remedy=_REMEDY)
    # A model is identified by its hash, so its folder may change. A finished run leaves its plan, too.
    complete = all(path.exists() for path in paths)
    same = continues(folder, record["plan"], plan, "resume", restarts=overwrite, same={"encoder"}, complete=complete)
    return record if same else None


def _is_plan(record: Any) -> bool:
    """Whether the content of a file has the form of a plan."""
    match record:
        case {"plan": {"shards": shards}, "documents": list(documents), "length": None | float(), **more}:
            return not more and len(documents) == shards and all(type(count) is int for count in documents)
    return False


def _begin(folder: Path, record: Mapping[str, Any], replaced: Sequence[Path]) -> None:
    """Removes the replaced shards and writes the record from which the run can be continued."""
    (folder / PLAN_FILE).unlink(missing_ok=True)  # first: a shard must never be beside another plan
    for path in [*replaced, folder / VECTORS_FILE] if replaced else ():
        path.unlink(missing_ok=True)
        clear_unfinished(path)
    with atomic_writer(folder / PLAN_FILE, "make room, or give another --output") as handle:
        json.dump(record, handle)


def _encode_missing(
    collection: str, output: str, encoder: str, settings: EncodeSettings, counted: Mapping[str, Any]
) -> str:
    """Encodes a shard unless it exists, and continues unfinished work. Returns the name of this machine."""
    path = settings.path(output)
    if not path.exists():
        try:
            encode_shard(collection, output, encoder, settings, counted=counted)
        except OutputError:
            if not path.exists():  # a process that seemed lost may just have finished the shard
                raise
    return socket.gethostname()
