"""Queries without a network: each of a text's tokens has a weight of its own, which is learnt."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding
from torch import Tensor

from pyserini_compneg.encode.sides import StaticEncoder
from pyserini_compneg.models import ModelOptions, StaticSide
from pyserini_compneg.models.tokenizer import index_term

IDF_SCALE = 1 / 3
"""What idf is multiplied by, to begin with: scores of some tens, as BM25 has, would saturate the loss's softmax."""


class StaticQueryModule(SparseStaticEmbedding):  # type: ignore[misc]  # mypy is told nothing of sentence-transformers
    """sentence-transformers' static embedding, of weights of 0 or more, for the terms that vectors are made of.

    Args:
        tokenizer: The documents'.
        weight: Where the weights of tokens start, (tokens,).
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
        """Writes the weights and the tokenizer as sentence-transformers has them: terms that are left out weigh 0."""
        from safetensors.torch import save_file

        weight = torch.relu(self.weight.detach()).cpu()
        if self.vocabulary is not None:
            kept = torch.zeros_like(weight)
            kept[self.vocabulary] = weight[self.vocabulary]
            weight = kept
        self.tokenizer.save_pretrained(folder)
        weight = weight[: len(self.tokenizer.get_vocab())].contiguous()  # as many as sentence-transformers expects
        save_file({"weight": weight}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps({"frozen": False}, indent=2) + "\n", encoding="utf-8")


def weights_of(side: StaticSide, tokenizer: Any, width: int) -> Tensor:
    """The weights that a checkpoint has, (width,).

    Raises:
        EncodingError: They cannot be read.
    """
    weights = StaticEncoder(side, ModelOptions()).weights
    found = torch.zeros(width)
    for token, number in tokenizer.get_vocab().items():
        found[number] = weights.get(index_term(token), 0.0)
    return found


def starting_weights(tokenizer: Any, texts: Iterable[str], width: int) -> Tensor:
    """ln(1 + (N − n + ½) / (n + ½)), BM25's idf, for a token that n of N texts have, times ``IDF_SCALE``; (width,).

    Special tokens weigh 0.

    Args:
        tokenizer: Makes tokens of the texts.
        texts: The documents, each counted once; read as a whole.
        width: Tokens of the model, of which the tokenizer may lack the last.
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
