"""Dense indexes of documents, made once for each model and collection."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from pyserini_compneg.encode.dense_vectors import Documents, contents_of, write_dense_vectors
from pyserini_compneg.errors import OutputError
from pyserini_compneg.lucene.dense import write_dense_index
from pyserini_compneg.models.cache import cache_home

if TYPE_CHECKING:
    from pyserini_compneg.encode.dense import DenseEncoder


def dense_index(documents: Documents, encoder: DenseEncoder, home: Path | None = None) -> Path:
    """Anserini's flat index of documents' dense vectors, from the cache if they were encoded before.

    Beside it are the vectors, in ``vectors/``. Both appear complete or not at all, and a killed process's work on the
    vectors is gone on with.

    Args:
        documents: Gives the documents; called twice.
        encoder: Makes their vectors.
        home: The cache; by default ``dense`` in the package's own.

    Returns:
        The folder of the index.

    Raises:
        CollectionError: No documents, one without a text, or an id given twice.
        EncodingError: The model gives no usable vectors.
        OutputError: The cache cannot be written, or another process makes the same vectors.
    """
    contents = contents_of(documents)
    folder = (home or cache_home() / "dense") / f"{encoder.model_hash}-{contents.digest}"
    index = folder / "index"
    if index.is_dir():
        return index
    vectors = write_dense_vectors(documents, contents, folder / "vectors", encoder)
    try:
        with FileLock(folder / ".index.lock"):
            if not index.is_dir():
                with tempfile.TemporaryDirectory(prefix=".index.", dir=folder) as place:
                    write_dense_index(vectors.parent, Path(place) / "index", contents.documents)
                    os.replace(Path(place) / "index", index)
    except OutputError:
        raise
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
        raise OutputError(f"{folder}: cannot be written: {reason}; name another place in COMPNEG_CACHE") from None
    return index
