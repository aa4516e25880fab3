"""The network of a reader, in torch: a transformer, and a score of each tag for each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models.hub import model_folder
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.reading.decomposition import Span
from pyserini_compneg.reading.tagger import first_tokens, is_capital
from pyserini_compneg.reading.tags import TAGS
from pyserini_compneg.support.errors import InputError, in_one_line

_DROPOUT = 0.1


class TaggerModule(nn.Module):  # type: ignore[misc]  # torch without types
    """Scores the tags of words.

    The second input of a BERT, ``token_type_ids``, tells capitals here; both of its embeddings start as the first.

    Args:
        trunk: A BERT without a head.
    """

    def __init__(self, trunk: Any) -> None:
        super().__init__()
        self.trunk = trunk
        types = trunk.embeddings.token_type_embeddings.weight
        with torch.no_grad():
            types[1] = types[0]
        self.head = nn.Linear(trunk.config.hidden_size, len(TAGS))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The score of each tag for each token."""
        states = self.trunk(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state
        scores: Tensor = self.head(nn.functional.dropout(states, _DROPOUT, self.training))
        return scores


def load_base(base: str) -> tuple[TaggerModule, Any]:
    """The network with the weights of a checkpoint, and its tokenizer.

    Raises:
        InputError: A checkpoint that cannot be loaded, or that is no BERT with a fast tokenizer.
        EncodingError: Neither a folder nor a model of the hub.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = model_folder(base)
    with in_one_line(InputError, f"{base}: cannot be loaded as a transformer"):
        settings = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if settings.model_type != "bert" or settings.type_vocab_size < 2 or not tokenizer.is_fast:
        kind = settings.model_type
        raise InputError(f"{base}: a reader starts from a BERT with two types and a fast tokenizer, got {kind}")
    with quiet_transformers(), in_one_line(InputError, f"{base}: cannot be loaded as a transformer"):
        trunk = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, local_files_only=True, trust_remote_code=False
        )
    return TaggerModule(trunk), tokenizer.backend_tokenizer


class Batch(NamedTuple):
    """Texts as tensors: the three inputs of the network, and the tag of each word at its first token."""

    inputs: tuple[Tensor, Tensor, Tensor]
    tags: Tensor


NO_TAG = -100
"""At tokens that begin no word; torch's losses leave it out."""


def batch_of(tokenizer: Any, texts: Sequence[tuple[str, Sequence[Span], Sequence[int]]], max_tokens: int) -> Batch:
    """Texts with their words and tags as a batch, as far as ``max_tokens``."""
    encoded = [tokenizer.encode(text) for text, _, _ in texts]
    width = min(max_tokens, max(len(entry.ids) for entry in encoded))
    inputs = torch.zeros(3, len(texts), width, dtype=torch.long)
    tags = torch.full((len(texts), width), NO_TAG)
    for row, (entry, (text, words, right)) in enumerate(zip(encoded, texts, strict=True)):
        size = min(width, len(entry.ids))
        inputs[0, row, :size] = torch.tensor(entry.ids[:size])
        inputs[1, row, :size] = torch.tensor(is_capital(text, words, entry.offsets)[:size])
        inputs[2, row, :size] = 1
        for place, tag in zip(first_tokens(words, entry.offsets), right, strict=True):
            if 0 < place < size:
                tags[row, place] = tag
    return Batch(tuple(inputs), tags)
