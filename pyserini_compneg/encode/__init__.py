"""Encoders turn texts into sparse vectors. :mod:`.neural`, with encoders that run models, is imported on first use."""

from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder, Bm25QueryEncoder
from pyserini_compneg.encode.cached import CachedQueryEncoder
from pyserini_compneg.encode.corpus import EncodeSettings, encode_collection
from pyserini_compneg.encode.hybrid import BM25, PREFIX, DocumentEncoder, checked_weight, model_parts, split_name
from pyserini_compneg.encode.query_encoders import query_encoder

__all__ = [
    "BM25",
    "PREFIX",
    "Bm25DocumentEncoder",
    "Bm25QueryEncoder",
    "CachedQueryEncoder",
    "DocumentEncoder",
    "EncodeSettings",
    "checked_weight",
    "encode_collection",
    "model_parts",
    "query_encoder",
    "split_name",
]
