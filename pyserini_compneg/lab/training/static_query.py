"""Query encoders without a network: each token of a text has its own weight, which is learned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding
from torch import Tensor

from pyserini_compneg.encode.models import ModelOptions, StaticSide
from pyserini_compneg.encode.models.tokenizer import index_term
from pyserini_compneg.encode.sides import load_side

IDF_SCALE = 1 / 3
"""The factor of idf at the start: with scores of some tens, as of BM25, the loss's softmax would saturate."""


class StaticQueryModule(SparseStaticEmbedding):  # type: ignore[misc]  # mypy is told nothing of sentence-transformers
    """sentence-transformers' static embedding, with weights of at least 0, for the terms of the vectors.

    Args:
        tokenizer: The tokenizer of the documents.
        weight: The first weights of the tokens, (tokens,).
        vocabulary: The ids of the terms that vectors are made of, ascending; None for all.
    """

    def __init__(self, tokenizer: Any, weight: Tensor, vocabulary: Sequence[int] | None) -> None:
        super().__init__(tokenizer, weight)
        self.register_buffer("vocabulary", None if vocabulary is None else torch.tensor(vocabulary))

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        """Adds ``sentence_embedding``, (texts, terms)."""
        features = super().forward(features)
        vectors = torch.relu(features["sentence_embedding"])
        features["sentence_embedding"] = vectors if self.vocabulary is None else vectors[:, self.vocabulary]
        return features

    def get_embedding_dimension(self) -> int:
        """The number of terms."""
        return self.num_dimensions if self.vocabulary is None else len(self.vocabulary)

    def write(self, folder: Path) -> None:
        """Writes the weights and the tokenizer as sentence-transformers does; terms outside the vocabulary weigh 0."""
        weight = torch.relu(self.weight.detach()).cpu()
        if self.vocabulary is not None:
            kept = torch.zeros_like(weight)
            kept[self.vocabulary] = weight[self.vocabulary]
            weight = kept
        weight = weight[: len(self.tokenizer.get_vocab())].contiguous()  # sentence-transformers expects so many
        folder.mkdir(parents=True, exist_ok=True)
        SparseStaticEmbedding(self.tokenizer, weight).save(str(folder))


def saved_weights(side: StaticSide, tokenizer: Any, width: int) -> Tensor:
    """The weights of a checkpoint, (width,).

    Raises:
        EncodingError: They cannot be read.
    """
    by_term = load_side(side, ModelOptions()).weights
    weights = torch.zeros(width)
    for token, number in tokenizer.get_vocab().items():
        weights[number] = by_term.get(index_term(token), 0.0)
    return weights


def idf_weights(tokenizer: Any, texts: Iterable[str], width: int) -> Tensor:
    """BM25's idf times ``IDF_SCALE``, (width,): ln(1 + (N − n + ½) / (n + ½)) for a token in n of N texts.

    Special tokens weigh 0.

    Args:
        tokenizer: Splits the texts into tokens.
        texts: The documents; each is counted once and read as a whole.
        width: The number of tokens of the model, of which the tokenizer may lack the last.
    """
    distinct = sorted(set(texts))
    counts: Counter[int] = Counter()
    for ids in tokenizer(distinct, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]:
        counts.update(set(ids))
    number = len(distinct)
    idf = [math.log1p((number - counts[token] + 0.5) / (counts[token] + 0.5)) for token in range(width)]
    weights = IDF_SCALE * torch.tensor(idf)
    weights[tokenizer.all_special_ids] = 0.0
    return weights
