"""Encodes a collection in shards, in one run, on one machine or on many."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyserini_compneg.documents.collection import collection_files, fingerprint, parts, say_formats
from pyserini_compneg.documents.formats import Format
from pyserini_compneg.documents.vector_files import (
    VECTORS_FILE,
    Shard,
    check_number_of_shards,
    check_output,
    check_same_division,
    clear_unfinished,
)
from pyserini_compneg.encode.bm25 import count_terms, mean_length
from pyserini_compneg.encode.corpus import Counted, count_documents, encode_collection
from pyserini_compneg.encode.hybrid import split_name
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.support.errors import InputError, OutputError
from pyserini_compneg.support.parallel import Runner, in_turn
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

PLAN_FILE = ".vectors.plan"
"""The file beside the shards that says what all of them are made of. It stays, so that another run can tell."""

_REMEDY = "give --overwrite to start anew, or another --output"


def encode_in_shards(
    collection: str | Path,
    output: str | Path,
    encoder: str,
    shards: int,
    *,
    run: Runner = in_turn,
    model_options: ModelOptions | None = None,
    fields: Sequence[str] | None = None,
    collection_format: Format | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> list[Path]:
    """Encodes a collection in shards, each into the file that :func:`encode_collection` makes of it, byte for byte.

    All documents are read and checked before the first is encoded.

    Args:
        collection: As for :func:`encode_collection`.
        output: The same.
        encoder: The same.
        shards: How many.
        run: Who encodes the shards. All of them must reach the collection, the folder and the model by their paths.
        model_options: As for :func:`encode_collection`.
        fields: The same.
        collection_format: The same.
        overwrite: Delete the shards that are there, when all that can be checked is good.
        resume: Keep the shards that are there if they are made of the same, and continue unfinished ones.

    Returns:
        The files.

    Raises:
        ArgumentError: A number of shards below 1 or above ``MOST_SHARDS``.
        InputError: A bad document, or a shard without any.
        ClusterError: A part of the work has met other files than this process.
        OutputError: As :func:`encode_collection`; shards are there that are made of something else; or a shard is not
            where it was made.
        CompNegError: As :func:`encode_collection`.
    """
    check_number_of_shards(shards)
    folder, chosen = Path(output), [Shard(number, shards) for number in range(shards)]
    paths = [folder / shard.file_name for shard in chosen]
    _check_folder(folder, paths, overwrite, resume)
    files = collection_files(collection, collection_format)
    say_formats(files)
    hybrid, model = split_name(encoder)
    keep_inputs(output, collection, *filter(os.path.isdir, [model]))
    settings = run(model_settings, [(model, model_options)], "reading the model")[0]
    plan: dict[str, Any] = {"shards": shards, "encoder": encoder, "model": settings, "fields": fields}
    plan = json.loads(json.dumps(plan | {"sources": fingerprint(files)}))
    if (counted := _continued(folder, plan, paths, overwrite) if resume else None) is None:
        counts = run(count_documents, [(part, fields, shards) for part in parts(files, shards)], "counting documents")
        documents = [sum(count) for count in zip(*counts, strict=True)]
        if 0 in documents:
            where = f"no documents in shard {documents.index(0)} of {shards}"
            raise InputError(f"{collection}: {where}; encode fewer shards")
        length = None
        if hybrid:
            terms = run(count_terms, [(part, fields) for part in parts(files, shards)], "counting terms")
            length = mean_length(terms)
        counted = Counted(plan["sources"], documents, length)
        _begin(folder, plan, paths if overwrite else (), counted)
    options = {"model_options": model_options, "fields": fields, "counted": counted}
    options |= {"collection_format": collection_format}
    tasks = [(str(collection), str(output), encoder, shard, options) for shard in chosen]
    for path, host in zip(paths, run(_encode_shard, tasks, "encoding"), strict=True):
        if not path.is_file():
            raise OutputError(f"{path}: is not here, but on the node {host}; all nodes must reach the same paths")
    return paths


def _check_folder(folder: Path, paths: Sequence[Path], overwrite: bool, resume: bool) -> None:
    """Makes sure that the shards may be written, before anything is read."""
    for path in paths:
        check_output(path, overwrite or (resume and not path.is_dir()))
        clear_unfinished(path, False, overwrite or resume)
    check_same_division(paths[0])


def _continued(folder: Path, plan: Mapping[str, Any], paths: Sequence[Path], overwrite: bool) -> Counted | None:
    """What an earlier run of the same plan has counted; None if there was no run, or if it is to be overwritten."""
    record: Any = None
    with suppress(OSError, ValueError, RecursionError):
        record = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
    if not _is_plan(record):
        if overwrite or not any(path.exists() for path in paths):
            return None
        raise OutputError(f"{folder}: nothing says what its shards are made of; {_REMEDY}")
    before = record["plan"]
    # A model is known by its hash, wherever its folder is now.
    if changed := ", ".join(name for name in plan if name != "encoder" and plan[name] != before.get(name)):
        if overwrite:
            return None
        raise OutputError(f"{folder}: its shards cannot be continued, because {changed} changed since; {_REMEDY}")
    return Counted(plan["sources"], record["documents"], record["length"])


def _is_plan(record: Any) -> bool:
    """Whether the content of a file has the form of a plan."""
    match record:
        case {"plan": {"shards": shards}, "documents": list(documents), "length": None | float(), **more}:
            return not more and len(documents) == shards and all(type(count) is int for count in documents)
    return False


def _begin(folder: Path, plan: Mapping[str, Any], replaced: Sequence[Path], counted: Counted) -> None:
    """Removes what is to be replaced, and writes down what is made now: from here on it can be continued."""
    (folder / PLAN_FILE).unlink(missing_ok=True)  # first: no shard may ever stand beside a plan that is not its own
    for path in [*replaced, folder / VECTORS_FILE] if replaced else ():
        path.unlink(missing_ok=True)
        clear_unfinished(path, True, False)
    with atomic_writer(folder / PLAN_FILE, "make room, or give another --output") as handle:
        json.dump({"plan": plan, "documents": counted.documents, "length": counted.length}, handle)


def model_settings(name: str, options: ModelOptions | None) -> dict[str, Any]:
    """What decides the vectors of a model, as a part of some work.

    Args:
        name: A folder, or a name of the Hugging Face hub.
        options: How it is run; None for the defaults.

    Raises:
        EncodingError: A model that cannot be used.
        DownloadError: One that cannot be downloaded.
    """
    from pyserini_compneg.encode.neural import document_settings, load_checkpoint

    return dict(document_settings(load_checkpoint(name, options), options))


def _encode_shard(collection: str, output: str, encoder: str, shard: Shard, options: Mapping[str, Any]) -> str:
    """Encodes a shard, or goes on with it, if it is not there already; returns the name of this machine."""
    path = Path(output) / shard.file_name
    if not path.exists():
        try:
            encode_collection(collection, output, encoder, shard=shard, resume=True, **options)
        except OutputError:
            if not path.exists():  # a process that was taken for lost may just have finished it
                raise
    return socket.gethostname()
