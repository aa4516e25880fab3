"""Chooses the query encoder from ``--encoder`` and an index's manifest, and refuses an encoder of another index."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

from pyserini_compneg.compose import QueryEncoder
from pyserini_compneg.encode.bm25 import Bm25QueryEncoder
from pyserini_compneg.encode.cached import CachedQueryEncoder
from pyserini_compneg.encode.models import Head, ModelOptions
from pyserini_compneg.errors import EncodingError, IndexFormatError
from pyserini_compneg.lucene import ImpactReader, Manifest

BM25 = "bm25"

_logger = logging.getLogger(__name__)


def query_encoder(
    name: str | None,
    reader: ImpactReader | None,
    model_options: ModelOptions | None = None,
    ablation: str | None = None,
) -> QueryEncoder:
    """The encoder for the queries of an index.

    Args:
        name: ``bm25``; a JSON Lines file of encoded atoms; a model, as a folder or as a name of the Hugging Face hub;
            or None, for the one that the manifest names.
        reader: The index; None where there is none. The encoder is not checked then.
        model_options: How a model is run; None for the defaults.
        ablation: The part of query vectors that is left out, one of ``ABLATIONS``; None for nothing.

    Raises:
        IndexFormatError: The encoder is not that of the index or needs one, or none is named anywhere.
        EncodingError: The encoder is unknown, or cannot be used.
        DownloadError: A model that cannot be downloaded from the hub.
    """
    manifest = reader.manifest if reader else None
    if name is None and reader is not None and manifest is not None:
        name = manifest.encoder
        if Path(name).is_file() or ".." in Path(name).parts:  # a build writes whole paths, and only those of models
            raise IndexFormatError(f"{reader.folder}: its encoder {name!r} is no model, so name the --encoder")
    if name is None:
        reason = f"{reader.folder}: has no compneg.json (stock Anserini built it)" if reader else "there is no index"
        raise IndexFormatError(f"{reason}, so name the --encoder")
    if name != BM25 and not Path(name).is_file():
        return _model(name, reader, model_options, ablation)
    if model_options is not None:
        raise EncodingError(f"{name}: not a model, so options such as --precision do not apply")
    if name == BM25:
        if reader is None:
            raise IndexFormatError("bm25 weighs a query's terms by the statistics of an index; name the --index")
        _check(name, manifest, reader.folder)
        return Bm25QueryEncoder(reader, ablation)
    if ablation is not None:
        raise EncodingError(f"{name}: vectors that were encoded elsewhere are taken as they are; leave out --ablation")
    return _cached(name, reader)


def _cached(name: str, reader: ImpactReader | None) -> CachedQueryEncoder:
    encoder = CachedQueryEncoder(name)
    manifest = reader.manifest if reader else None
    if encoder.name is None and manifest is not None and manifest.encoder != BM25:
        _logger.warning('%s does not say its "encoder"; taking it for %s, as the index is', name, manifest.encoder)
    elif reader is not None:
        _check(encoder.name or name, manifest, reader.folder)
    return encoder


def _model(name: str, reader: ImpactReader | None, options: ModelOptions | None, ablation: str | None) -> QueryEncoder:
    from pyserini_compneg.encode.neural import ModelQueryEncoder, checkpoint_hash, load_checkpoint

    manifest = reader.manifest if reader else None
    made_by = manifest.settings.get("model") if manifest else None
    if reader is not None and made_by is None:
        _check(name, manifest, reader.folder)
    if manifest is not None and "head" in manifest.settings and (options is None or options.head is None):
        options = replace(options or ModelOptions(), head=Head.parse(str(manifest.settings["head"])))
    checkpoint = load_checkpoint(name, options)
    if reader is not None and manifest is not None and made_by not in (None, checkpoint_hash(checkpoint)):
        raise IndexFormatError(
            f"{reader.folder} was encoded with {manifest.encoder!r} ({made_by}), and {name!r} is another model "
            f"({checkpoint_hash(checkpoint)}), or has changed since; use the index's encoder"
        )
    return ModelQueryEncoder(checkpoint, options, ablation)


def _check(name: str, manifest: Manifest | None, folder: Path) -> None:
    if manifest is not None and manifest.encoder != name and os.path.realpath(name) != manifest.encoder:
        raise IndexFormatError(
            f"{folder} was encoded with {manifest.encoder!r}, the queries with {name!r}; use the index's encoder"
        )
