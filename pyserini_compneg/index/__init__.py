"""Collections in, impact indexes out."""

from pyserini_compneg.index.indexer import IndexReport, build_index

__all__ = ["IndexReport", "build_index"]
