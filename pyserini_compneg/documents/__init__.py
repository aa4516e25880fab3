"""Collections: files of documents and files of vectors."""

from pyserini_compneg.documents.passages import Passage
from pyserini_compneg.documents.source_documents import SourceDocument, source_document

__all__ = ["Passage", "SourceDocument", "source_document"]
