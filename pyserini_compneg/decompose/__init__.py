"""Plain texts as expressions: what is wanted, what is excluded, and which words say so."""

from pyserini_compneg.decompose.decomposing import decompose
from pyserini_compneg.decompose.llm import LlmReader
from pyserini_compneg.expression.decomposition import (
    Decomposition,
    Part,
    Reason,
    Span,
    or_undivided,
    to_object,
    undivided,
)

__all__ = [
    "Decomposition",
    "LlmReader",
    "Part",
    "Reason",
    "Span",
    "decompose",
    "or_undivided",
    "to_object",
    "undivided",
]
