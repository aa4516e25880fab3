"""Checks a finished index completely, for damage that searches do not detect."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from pyserini_compneg.encode import BM25
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene import (
    CONTENTS,
    SHARDS_NAME,
    ImpactReader,
    Manifest,
    ShardedReader,
    java_class,
    resolve_index,
)
from pyserini_compneg.lucene.gate import java_errors
from pyserini_compneg.lucene.shards import common_content, read_shards, shard_commit
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError
from pyserini_compneg.support.processors import processors

_logger = logging.getLogger(__name__)


def verify_index(index: str | Path, threads: int | None = None) -> int:
    """Reads the complete index: checks its checksums, its structure, each document's id, and the manifest.

    In the manifest, it checks the number of documents without a term, ``signed``, the names of the filter fields, and
    BM25's impact scale: the largest impact cannot exceed it, because BM25's weights are below 1. It checks each
    document's number of pairs by ``pair_terms``, and the impact of its largest pair, or the documents and impacts of
    ``pairs``. A chosen pair whose terms contain the sign of pairs is not checked.

    Several documents of an index without a manifest may have the same id, as in Anserini: a warning counts them.

    Writes nothing. The index may be searched at the same time.

    Args:
        index: The folder, or the name of a prebuilt index.
        threads: The number of threads; None for the number of processors.

    Returns:
        The number of documents.

    Raises:
        IndexReadError: The index is damaged, or there is no index. The error describes the first damage.
    """
    whole = resolve_index(index)
    if (whole / SHARDS_NAME).is_file():
        return _verify_shards(whole, threads)
    return _verify(whole, None, threads)


def _verify(whole: Path, commit: str | None, threads: int | None) -> int:
    """Reads a commit of one index, or its last commit."""
    with ImpactReader(whole, commit) as reader:
        folder, manifest = reader.folder, reader.manifest
        try:
            for name in manifest.filter_fields if manifest else ():
                reader.filtered(Filter({name: ()}))
        except IndexFormatError as error:
            raise error.recast(IndexReadError, "its manifest names that field, so rebuild it") from None
    check = java_class("io.compneg.index.IndexCheck").check
    with java_errors(IndexReadError, "is damaged, rebuild it", folder):
        paths = [os.path.abspath(place) for place in (folder, folder / (commit or ""))]
        pair_terms, pairs, scale = (
            (manifest.pair_terms, manifest.pairs, manifest.pair_scale) if manifest else (-1, (), 1)
        )
        documents, *found, repeated = check(
            *paths, CONTENTS, threads or processors(), pair_terms, "\n".join(pairs).encode(), scale
        )
    if manifest and (fault := _contradiction(manifest, documents, *found)):
        raise IndexReadError(f"is damaged, rebuild it: {fault}", where=folder)
    if repeated:
        said = "%s: %d of %d documents have the id of an earlier one: a ranking has the best document of each id"
        _logger.warning(said, folder, repeated, documents)
    return int(documents)


def _verify_shards(index: Path, threads: int | None) -> int:
    """Reads all shards of an index, and checks that they belong together."""
    ShardedReader(index).close()
    commits = [shard_commit(index / entry.path, entry) for entry in read_shards(index)]
    documents = sum(_verify(commit.parent, commit.name, threads) for commit in commits)
    twice, _ = common_content(commits)
    if twice is not None:
        raise IndexReadError(f"is damaged, rebuild it: two shards have the document {twice!r}", where=index)
    return documents


def _contradiction(manifest: Manifest, documents: int, with_terms: int, complements: int, impact: int) -> str:
    """How an index contradicts its manifest, by the numbers of ``IndexCheck``; empty if they agree."""
    if manifest.empty_documents != (empty := documents - with_terms):
        return f"{empty} documents have no term, and the manifest counts {manifest.empty_documents}"
    if complements and not manifest.signed:
        return "it has negative weights, and the manifest says signed: false"
    if manifest.encoder == BM25 and impact > (largest := round(manifest.impact_scale)):
        return f"it has an impact of {impact}, and bm25's are at most {largest}, the manifest's impact_scale"
    return ""
