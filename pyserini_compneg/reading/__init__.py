"""Plain texts as expressions: what is wanted, what is excluded, and which words say so."""

from pyserini_compneg.expression.decomposition import Decomposition, or_undivided, to_object, undivided
from pyserini_compneg.reading.decomposing import decompose
from pyserini_compneg.reading.llm import LlmReader
from pyserini_compneg.reading.readers import READINGS, reader

__all__ = ["READINGS", "Decomposition", "LlmReader", "decompose", "or_undivided", "reader", "to_object", "undivided"]
