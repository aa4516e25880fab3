"""Heads in torch: from the hidden states of tokens to one vector a text.

The logits of all tokens for the whole vocabulary, gigabytes for a batch of long texts, never exist at once: the
vocabulary is worked through in slices that stay in the processor's cache. Activations grow with the logit, so they are
applied after the maximum, to one value a term instead of one a token and term.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.models.heads import Head

SLICE = 4096
"""Terms whose logits are computed together."""


def pooled(hidden: Tensor, mask: Tensor, slices: Sequence[tuple[Tensor, Tensor]], head: Head) -> Tensor:
    """The vectors of a batch.

    Args:
        hidden: The states that the decoder takes, (batch, tokens, width); the first token of each text is a real one.
        mask: 1 for tokens, 0 for padding, (batch, tokens).
        slices: The decoder's weights, (terms, width), and biases, (terms,), in parts.
        head: Activation and pooling.

    Returns:
        The weights, (batch, vocabulary).
    """
    if head.pooling == "sum" and not head.signed:
        counted = mask[:, :, None].to(hidden.dtype)
        parts = [(activated(functional.linear(hidden, weight, bias), head) * counted).sum(1) for weight, bias in slices]
        return torch.cat(parts, -1)
    # A copy of the first token in place of padding changes no maximum and no minimum. Masking the hidden states is
    # cheaper than masking logits, and multiplying by 0 would make padding win over negative logits.
    real = torch.where(mask[:, :, None] > 0, hidden, hidden[:, :1])
    return torch.cat([_extreme(functional.linear(real, weight), bias, head) for weight, bias in slices], -1)


def activated(logits: Tensor, head: Head) -> Tensor:
    """The positive side of the activation: log(1 + ReLU(out − ε)), Eq. 2 and 11, or its logarithm once more."""
    value = torch.log1p(torch.relu(logits - head.epsilon if head.epsilon else logits))
    return torch.log1p(value) if head.activation == "log1p_relu" else value


def _extreme(products: Tensor, bias: Tensor, head: Head) -> Tensor:
    """Maximum over the tokens, or what Eq. 12 and 13 make of maximum and minimum; all tokens have the same bias."""
    positive = activated(products.amax(1) + bias, head)
    if not head.signed:
        return positive
    negative = activated(-(products.amin(1) + bias), head)
    if head.pooling == "sum":
        return positive - negative
    return torch.where(positive >= negative, positive, -negative)
