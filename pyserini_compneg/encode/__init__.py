"""Encoders: texts in, sparse vectors out. :mod:`.neural`, the encoders of models, is imported only when one is used."""

from typing import TYPE_CHECKING

from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder, Bm25QueryEncoder
from pyserini_compneg.encode.cached import CachedQueryEncoder
from pyserini_compneg.encode.encoder import DocumentEncoder
from pyserini_compneg.encode.hybrid import BM25
from pyserini_compneg.encode.registry import query_encoder

if TYPE_CHECKING:
    from pyserini_compneg.encode.sides import load_side

__all__ = [
    "BM25",
    "Bm25DocumentEncoder",
    "Bm25QueryEncoder",
    "CachedQueryEncoder",
    "DocumentEncoder",
    "load_side",
    "query_encoder",
]


def __getattr__(name: str) -> object:
    """Imports what runs models on first use."""
    if name != "load_side":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyserini_compneg.encode.sides import load_side

    return load_side
