"""The network of a latent model in torch: a trunk, the encoder of a sparse autoencoder, and the maximum over tokens."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models.latents import LatentHead


class LatentModule(nn.Module):  # type: ignore[misc]  # mypy has no types of torch
    """A network that returns the latents of each text, (batch, latents).

    ``weight``, (latents, width of the trunk), and ``bias``, (latents,), are the autoencoder's encoder. Tokens of the
    ``silent`` ids, such as that of [CLS], light no latent.
    """

    def __init__(self, trunk: Any, weight: Tensor, bias: Tensor, head: LatentHead, silent: Iterable[int]) -> None:
        super().__init__()
        self.trunk, self.head, self.width = trunk, head, head.latents
        self._takes_types = "token_type_ids" in signature(trunk.forward).parameters
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        counted = torch.ones(trunk.get_input_embeddings().num_embeddings)
        counted[[number for number in silent if number < len(counted)]] = 0
        self.register_buffer("counted", counted)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The vectors of token ids, (batch, tokens), as (batch, latents)."""
        logits = nn.functional.linear(self.hidden(input_ids, token_type_ids, attention_mask), self.weight, self.bias)
        lit, latents = torch.topk(logits, self.head.active, -1)
        counted = self.counted[input_ids] * attention_mask.to(lit.dtype)
        lit = torch.relu(lit) * counted[:, :, None]
        empty = torch.zeros_like(logits[:, 0])
        return empty.scatter_reduce(1, latents.flatten(1), lit.flatten(1), "amax")

    def hidden(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The token vectors of the trunk, (batch, tokens, width)."""
        types = {"token_type_ids": token_type_ids} if self._takes_types else {}
        hidden: Tensor = self.trunk(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        return hidden
