"""Flat indexes of dense vectors: built by Anserini, searched exactly."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.errors import EncodingError, OutputError
from pyserini_compneg.lucene.gate import java_class, java_errors
from pyserini_compneg.lucene.open_index import OpenIndex
from pyserini_compneg.lucene.reader import Ranking, unpack_rankings

_MEMORY_BUFFER_MB = 256


def write_dense_index(vectors: Path, index: Path, documents: int) -> None:
    """Builds a flat index as ``io.anserini.index.IndexFlatDenseVectors`` does, of vectors as they are.

    Args:
        vectors: A folder of ``JsonDenseVectorCollection``: lines of ``{"docid", "vector": [...]}``, each of length 1.
        index: The folder to make.
        documents: How many lines there are; Anserini itself goes on where it cannot read one.

    Raises:
        OutputError: The folder cannot be written, or some lines could not be indexed.
    """
    settings = java_class("io.anserini.index.IndexFlatDenseVectors$Args")()
    settings.collectionClass, settings.input = "JsonDenseVectorCollection", os.path.abspath(vectors)
    settings.index, settings.threads = os.path.abspath(index), 1
    settings.memoryBuffer, settings.quiet = _MEMORY_BUFFER_MB, True
    with java_errors(OutputError, f"{index}: the index cannot be written"):
        indexer = java_class("io.anserini.index.IndexFlatDenseVectors")(settings)
        indexer.run()
    with DenseReader(index) as reader:
        if reader.document_count != documents:
            raise OutputError(
                f"{index}: Anserini indexed {reader.document_count:,} of {documents:,} vectors; look for what it said, "
                f"and whether the lines of {vectors} are whole"
            )


class DenseReader(OpenIndex):
    """Reads a flat dense index of Anserini. Close it, or use it as a context manager.

    Args:
        folder: The folder.

    Raises:
        IndexFormatError: No Lucene index, or one without vectors to be compared by their dot product.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._open("io.compneg.DenseSearcher")

    @property
    def dimensions(self) -> int:
        """The numbers of a vector."""
        return int(self._call(self._searcher.dimensions))

    def search(self, queries: Sequence[NDArray[np.floating]], hits: int, threads: int = 1) -> list[Ranking]:
        """Scores all documents for each query, and ranks the best.

        A query is a subspace: the rows of an orthonormal basis, (rows, dimensions). A document, of length 1, scores
        (1 + c) / 2 from 0 to 1, as in Lucene. For one row c is its dot product with the document, and the score that
        of Anserini's ``FlatDenseSearcher``; for more, c is the length of the document's projection on the subspace.

        Args:
            queries: The subspaces; one without rows finds nothing.
            hits: The most documents to return for each.
            threads: Queries searched at once.

        Returns:
            A ranking a query, in their order: higher scores first, equal ones by ascending docid.

        Raises:
            EncodingError: Vectors of another model.
            IndexFormatError: An index that is not flat.
        """
        if not queries:
            return []
        for query in queries:
            if query.shape[1:] != (self.dimensions,):
                raise EncodingError(
                    f"{self.folder}: holds vectors of {self.dimensions} numbers, the query has shape {query.shape}; "
                    "use the index's model"
                )
        rows = array("i", map(len, queries)).tobytes()
        packed = rows + np.concatenate(queries).astype("<f4").tobytes()
        hits = min(hits, self.document_count)
        answer = self._call(self._searcher.search, packed, len(queries), hits, min(threads, len(queries)))
        return unpack_rankings(bytes(answer.tostring()), len(queries))
