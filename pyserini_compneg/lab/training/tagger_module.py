"""The network of a reader, in torch: a transformer that scores each tag for each token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models import model_folder, quiet_transformers
from pyserini_compneg.reading import TAGS, Span, first_tokens, is_capital
from pyserini_compneg.support.errors import InputError, in_one_line

_DROPOUT = 0.1
_FEWEST_TOKENS = 32
"""A model that reads fewer would cut most requests."""

NO_TAG = -100
"""The label of tokens that begin no word. Torch's losses ignore it."""


class TaggerModule(nn.Module):  # type: ignore[misc]  # torch has no types
    """Scores the tags of words with a BERT.

    The second input, ``token_type_ids``, marks capitals. Both of its embeddings start as the first embedding.
    ``transitions`` has the score of each tag (column) after each tag (row).
    """

    def __init__(self, trunk: Any) -> None:
        super().__init__()
        self.trunk = trunk
        types = trunk.embeddings.token_type_embeddings.weight
        with torch.no_grad():
            types[1] = types[0]
        self.head = nn.Linear(trunk.config.hidden_size, len(TAGS))
        self.transitions = nn.Parameter(torch.zeros(len(TAGS), len(TAGS)))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.trunk(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state
        scores: Tensor = self.head(nn.functional.dropout(states, _DROPOUT, self.training))
        return scores


def load_base(base: str) -> tuple[TaggerModule, Any]:
    """The network with the weights of a checkpoint, and its tokenizer."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = model_folder(base)
    loading = partial(in_one_line, InputError, "cannot be loaded as a transformer", where=base)
    with loading():
        settings = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if settings.model_type != "bert":
        fault = f"is of the type {settings.model_type}, not bert"
    elif settings.type_vocab_size < 2:
        fault = f"has {settings.type_vocab_size} type of tokens, not two"
    elif settings.max_position_embeddings < _FEWEST_TOKENS:
        fault = f"reads {settings.max_position_embeddings} tokens, not {_FEWEST_TOKENS} or more"
    else:
        fault = "" if tokenizer.is_fast else "has a slow tokenizer"
    if fault:
        raise InputError(f"a reader cannot start from this model: it {fault}", where=base)
    with quiet_transformers(), loading():
        trunk = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, local_files_only=True, trust_remote_code=False
        )
    if not len(tokenizer.all_special_ids) < len(tokenizer) <= len(trunk.embeddings.word_embeddings.weight):
        fault = f"its tokenizer has {len(tokenizer)} tokens, which do not fit its network"
        raise InputError(fault, where=base, remedy="complete the files of the checkpoint")
    with loading():
        tokenizer.backend_tokenizer.encode("\N{SNOWMAN}")  # fails if there is no token for unknown words
    return TaggerModule(trunk), tokenizer.backend_tokenizer


def batch_of(
    tokenizer: Any, texts: Sequence[tuple[str, Sequence[Span], Sequence[int]]], max_tokens: int
) -> tuple[Tensor, Tensor]:
    """The inputs of the network for texts, (3, texts, tokens), and the tags of words at their first tokens."""
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
    return inputs, tags


def sequence_loss(scores: Tensor, tags: Tensor, transitions: Tensor) -> Tensor:
    """The negative log probability of the tags as sequences, divided by the number of words.

    This is the loss of a linear-chain conditional random field (Lafferty, McCallum, Pereira 2001). ``scores`` are
    (texts, tokens, tags). Tokens whose label is ``NO_TAG`` are left out, so that the words of a text are neighbours.
    """
    kept = tags != NO_TAG
    order = (~kept).int().argsort(dim=1, stable=True)[:, : int(kept.sum(1).max())]
    tags, kept = tags.gather(1, order).clamp(min=0), kept.gather(1, order)
    scores = scores.gather(1, order[..., None].expand(-1, -1, scores.shape[2]))
    right = (scores.gather(2, tags[..., None])[..., 0] * kept).sum(1)
    right = right + (transitions[tags[:, :-1], tags[:, 1:]] * kept[:, 1:]).sum(1)
    total = scores[:, 0]
    for place in range(1, scores.shape[1]):
        longer = torch.logsumexp(total[:, :, None] + transitions, 1) + scores[:, place]
        total = torch.where(kept[:, place, None], longer, total)
    return ((torch.logsumexp(total, 1) - right) * kept[:, 0]).sum() / kept.sum()
