"""Documents' dense vectors in Anserini's JSON form, encoded once, in several goes if it must be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.encode.shard_file import ShardFile
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.progress import progress

VECTORS_FILE = "vectors.jsonl.gz"

_BATCH = 512
"""Documents that are sorted by length together, and lost at most where a process is killed."""

_REMEDY = "make room, or name another place in COMPNEG_CACHE"

Documents = Callable[[], Iterable[SourceDocument]]
"""What gives all documents, in the same order whenever it is called."""


class DenseDocumentEncoder(Protocol):
    """Makes dense vectors of documents' texts."""

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each text, (texts, dimensions)."""


class Contents(NamedTuple):
    """What documents are known by.

    Attributes:
        documents: How many there are.
        digest: A hash of their ids and texts, in their order.
    """

    documents: int
    digest: str


def contents_of(documents: Documents) -> Contents:
    """Reads all documents for what is wrong with them, before hours are spent on the first ones.

    Raises:
        CollectionError: No documents, one without a text, or an id given twice.
    """
    digest = hashlib.sha256()
    first: dict[str, str] = {}
    for docid, text, source in _texts(documents):
        if docid in first:
            raise CollectionError(f"{source}: document id {docid!r} was given at {first[docid]} already")
        first[docid] = source
        digest.update(json.dumps([docid, text]).encode())
    if not first:
        raise CollectionError("there are no documents to encode")
    return Contents(len(first), digest.hexdigest()[:16])


def write_dense_vectors(documents: Documents, contents: Contents, folder: Path, encoder: DenseDocumentEncoder) -> Path:
    """Encodes documents into a file, unless that was done; goes on where a killed process ended.

    The file, ``VECTORS_FILE``, appears complete or not at all. Its lines are ``{"docid", "vector": [...]}``, in the
    order of the documents, as ``JsonDenseVectorCollection`` of Anserini reads them.

    Args:
        documents: Gives them.
        contents: What :func:`contents_of` says of them.
        folder: One for these documents and this encoder alone; made if there is none.
        encoder: Makes the vectors.

    Returns:
        The file.

    Raises:
        EncodingError: The model gives no usable vectors.
        OutputError: The folder cannot be written, or another process writes in it.
    """
    place = folder / VECTORS_FILE
    if place.exists():
        return place
    with (
        ShardFile(place, contents._asdict(), False, True, _REMEDY, "run the same again") as target,
        progress(None, contents.documents, " docs", "encoding") as bar,
    ):
        bar.update(target.documents)
        left = islice(_texts(documents), target.documents, None)
        while batch := list(islice(left, _BATCH)):
            vectors = encoder.encode_documents([text for _, text, _ in batch])
            lines = [_line(docid, vector) for (docid, _, _), vector in zip(batch, vectors, strict=True)]
            target.add((0, target.documents + len(batch) + 1), lines)
            bar.update(len(batch))
    return place


def _texts(documents: Documents) -> Iterator[tuple[str, str, str]]:
    for document in documents():
        if document.text is None:
            raise CollectionError(f"{document.source}: only a `vector`, where texts are encoded")
        yield document.docid, document.text, document.source


def _line(docid: str, vector: NDArray[np.float32]) -> str:
    """JSON with as many digits as a 32-bit float has; read as such, it is the same number."""
    numbers = ", ".join(map(str, vector))
    return f'{{"docid": {json.dumps(docid, ensure_ascii=False)}, "vector": [{numbers}]}}'
