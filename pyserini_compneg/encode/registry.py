"""From ``--encoder`` and an index's manifest to the encoder of its queries, or an error that prevents a bad run."""

from __future__ import annotations

import logging
from pathlib import Path

from pyserini_compneg.encode.bm25 import Bm25QueryEncoder
from pyserini_compneg.encode.cached import CachedQueryEncoder
from pyserini_compneg.errors import IndexFormatError
from pyserini_compneg.lucene import ImpactReader, Manifest

BM25 = "bm25"
_logger = logging.getLogger(__name__)


def query_encoder(name: str | None, reader: ImpactReader | None) -> Bm25QueryEncoder | CachedQueryEncoder:
    """The encoder for the queries of an index.

    Args:
        name: ``bm25``; a JSON Lines file of encoded atoms; or None, for the one that the manifest names.
        reader: The index; None where there is none, and so nothing to check the encoder against.

    Raises:
        IndexFormatError: The encoder is unknown, not that of the index or needs one, or none is named anywhere.
    """
    manifest = reader.manifest if reader else None
    if name is None and manifest is not None:
        name = manifest.encoder
    if name is None:
        place = f"{reader.folder}: has no compneg.json (stock Anserini built it)" if reader else "there is no index"
        raise IndexFormatError(f"{place}, so name the --encoder")
    if name == BM25:
        if reader is None:
            raise IndexFormatError("bm25 weighs a query's terms by the statistics of an index; name the --index")
        _check(name, manifest, reader.folder)
        return Bm25QueryEncoder(reader)
    if not Path(name).is_file():
        raise IndexFormatError(
            f"no query encoder {name!r}; expected bm25, or a JSON Lines file of queries encoded with the index's model"
        )
    encoder = CachedQueryEncoder(name)
    if encoder.name is None and manifest is not None and manifest.encoder != BM25:
        _logger.warning('%s does not say its "encoder"; taking it for %s, as the index is', name, manifest.encoder)
    elif reader is not None:
        _check(encoder.name or name, manifest, reader.folder)
    return encoder


def _check(name: str, manifest: Manifest | None, folder: Path) -> None:
    if manifest is not None and manifest.encoder != name:
        raise IndexFormatError(
            f"{folder} was encoded with {manifest.encoder!r}, the queries with {name!r}; use the index's encoder"
        )
