"""Collections: files of documents and files of vectors."""

from pyserini_compneg.documents.collection import SourceDocument

__all__ = ["SourceDocument"]
