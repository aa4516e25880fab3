"""Plain texts as expressions: what is wanted, what is excluded, and which words say so."""

from pyserini_compneg.decompose.decomposing import decompose
from pyserini_compneg.decompose.decomposition import Decomposition, Part, Reason, Span
from pyserini_compneg.decompose.language import Language, load_language

__all__ = ["Decomposition", "Language", "Part", "Reason", "Span", "decompose", "load_language"]
