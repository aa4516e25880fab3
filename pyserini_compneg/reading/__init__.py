"""Plain texts as expressions: what is wanted, what is excluded, and how it is joined."""

from pyserini_compneg.reading.assembly import tagged_reading
from pyserini_compneg.reading.decomposition import READINGS, Decomposition, to_object, undivided
from pyserini_compneg.reading.llm import LlmReader
from pyserini_compneg.reading.model_reader import ModelReader, decompose
from pyserini_compneg.reading.readers import ReadTexts, reader

__all__ = [
    "READINGS",
    "Decomposition",
    "LlmReader",
    "ModelReader",
    "ReadTexts",
    "decompose",
    "reader",
    "tagged_reading",
    "to_object",
    "undivided",
]
