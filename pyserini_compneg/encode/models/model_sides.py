"""The two sides of a model, documents' and queries', which may be one and the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.encode.models.heads import Head

WEIGHT_FILES = ("model*.safetensors", "pytorch_model*.bin")
OWN_LOGITS_FILE = "own_logits.safetensors"
"""Beside SpladePooling's configuration, which then says ``"own_logits": true``."""

TEXT_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
)
"""The files of a configuration and of a tokenizer, in their several formats."""


@dataclass(frozen=True, slots=True)
class StaticSide:
    """Vectors without a network: each token of a text has a weight of its own.

    Attributes:
        folder: Where its tokenizer is.
        weights: A safetensors file with a tensor ``weight``, or JSON of ``{token: weight}``; None for ones.
        max_length: Tokens that are read of a text, unless the user says otherwise.
        longest: Tokens that the tokenizer allows.
        prompt: What is put before each text.
    """

    folder: Path
    weights: Path | None
    max_length: int
    longest: int
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class NeuralSide:
    """Vectors of a masked language model.

    Attributes:
        folder: Where its configuration, weights and tokenizer are.
        head: What makes vectors of its logits.
        max_length: Tokens that are read of a text, with those that the tokenizer adds, unless the user says otherwise.
        longest: Tokens that the model can read.
        prompt: What is put before each text.
        lowercase: Whether sentence-transformers puts texts into lower case before the tokenizer sees them.
        own_terms: Weights of tokens. If given, a vector has only terms of the text's own tokens, times these weights.
        own_logits: A safetensors file with a tensor ``logits``, which is added to the logits that tokens have for their
            own terms, in place of the decoder's bias. None if these logits are computed as all others.
    """

    folder: Path
    head: Head
    max_length: int
    longest: int
    prompt: str = ""
    lowercase: bool = False
    own_terms: StaticSide | None = None
    own_logits: Path | None = None

    @property
    def files(self) -> list[Path]:
        """The files of the configuration, the tokenizer and the weights."""
        others = [self.own_terms.weights] if self.own_terms and self.own_terms.weights else []
        others += [self.own_logits] if self.own_logits else []
        places = {self.folder, self.own_terms.folder} if self.own_terms else {self.folder}
        texts = [place / name for place in sorted(places) for name in TEXT_FILES]
        return [file for file in texts if file.is_file()] + self.weights + others

    @property
    def weights(self) -> list[Path]:
        """The files of weights, in the safe format if there are any; transformers reads the same ones."""
        return next(filter(None, (sorted(self.folder.glob(pattern)) for pattern in WEIGHT_FILES)), [])


Side: TypeAlias = NeuralSide | StaticSide
