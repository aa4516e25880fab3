"""Collections in, impact indexes out."""

from pyserini_compneg.index.indexer import build_index

__all__ = ["build_index"]
