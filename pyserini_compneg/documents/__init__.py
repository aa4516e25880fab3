"""Collections: files of documents and files of vectors."""

from pyserini_compneg.documents.collection import collection_files, fingerprint, say_formats
from pyserini_compneg.documents.formats import Format
from pyserini_compneg.documents.passages import Passage
from pyserini_compneg.documents.source_documents import (
    SourceDocument,
    collection_texts,
    iter_documents,
    source_document,
)

__all__ = [
    "Format",
    "Passage",
    "SourceDocument",
    "collection_files",
    "collection_texts",
    "fingerprint",
    "iter_documents",
    "say_formats",
    "source_document",
]
