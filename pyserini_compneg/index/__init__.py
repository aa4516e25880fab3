"""Builds impact indexes from collections."""

from pyserini_compneg.index.build import asked_pairs, build_index
from pyserini_compneg.index.indexer import ImpactIndexer
from pyserini_compneg.index.sharded import build_sharded_index
from pyserini_compneg.index.update import UpdateReport, update_index
from pyserini_compneg.index.updater import ImpactUpdater, UpdateCounts
from pyserini_compneg.index.verify import verify_index
from pyserini_compneg.lucene import IndexSettings

__all__ = [
    "ImpactIndexer",
    "ImpactUpdater",
    "IndexSettings",
    "UpdateCounts",
    "UpdateReport",
    "asked_pairs",
    "build_index",
    "build_sharded_index",
    "update_index",
    "verify_index",
]
