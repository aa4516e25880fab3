"""Checks a finished index from end to end, for damage that no search notices."""

from __future__ import annotations

import os
from pathlib import Path

from pyserini_compneg.errors import IndexReadError
from pyserini_compneg.lucene import CONTENTS, ImpactReader, java_class
from pyserini_compneg.lucene.gate import java_errors


def verify_index(index: str | Path, threads: int | None = None) -> int:
    """Reads all of an index: its checksums, its structure, each document's id, and what the manifest counts.

    Nothing is written, and the index may be searched meanwhile.

    Args:
        index: The folder, or the name of a prebuilt index.
        threads: Threads; None for one a processor.

    Returns:
        The number of documents.

    Raises:
        IndexReadError: The first damage that was found, or there is no index.
    """
    with ImpactReader(index) as reader:
        folder, manifest = reader.folder, reader.manifest
    check = java_class("io.compneg.IndexCheck").check
    with java_errors(IndexReadError, f"{folder}: is damaged, rebuild it"):
        documents, with_terms = check(os.path.abspath(folder), CONTENTS, threads or os.cpu_count() or 1)
    if manifest and manifest.empty_documents != (empty := documents - with_terms):
        counted = f"{empty} documents have no term, and the manifest counts {manifest.empty_documents}"
        raise IndexReadError(f"{folder}: is damaged, rebuild it: {counted}")
    return int(documents)
