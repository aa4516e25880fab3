"""Reads plain texts as expressions: what is wanted, what is excluded, and how the parts are joined."""

from importlib import import_module
from typing import TYPE_CHECKING

from pyserini_compneg.reading.assembly import tagged_reading
from pyserini_compneg.reading.chat import ChatModel, answered_object
from pyserini_compneg.reading.confidence import SIGNS
from pyserini_compneg.reading.decomposition import READINGS, Decomposition, Span, undivided
from pyserini_compneg.reading.llm import LlmReader, ReadTexts, read_texts, reader, warn_of_doubts
from pyserini_compneg.reading.model_reader import ModelReader, decompose
from pyserini_compneg.reading.words import EXCLUDED, LONGEST_GAP, NONE, SHARED, TAGS, WANTED, words_of

if TYPE_CHECKING:
    from pyserini_compneg.reading.tagger import (
        MODEL_FILE,
        SETTINGS_FILE,
        TOKENIZER_FILE,
        first_tokens,
        is_capital,
        write_settings,
    )

__all__ = [
    "EXCLUDED",
    "LONGEST_GAP",
    "MODEL_FILE",
    "NONE",
    "READINGS",
    "SETTINGS_FILE",
    "SHARED",
    "SIGNS",
    "TAGS",
    "TOKENIZER_FILE",
    "WANTED",
    "ChatModel",
    "Decomposition",
    "LlmReader",
    "ModelReader",
    "ReadTexts",
    "Span",
    "answered_object",
    "decompose",
    "first_tokens",
    "is_capital",
    "read_texts",
    "reader",
    "tagged_reading",
    "undivided",
    "warn_of_doubts",
    "words_of",
    "write_settings",
]

_OF_NUMPY = ("MODEL_FILE", "SETTINGS_FILE", "TOKENIZER_FILE", "first_tokens", "is_capital", "write_settings")


def __getattr__(name: str) -> object:
    """Imports names that need numpy on first use."""
    if name not in _OF_NUMPY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.tagger"), name)
