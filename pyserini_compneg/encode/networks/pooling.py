"""Heads in torch: turn the hidden states of tokens into one vector for each text.

The logits of all tokens for the whole vocabulary would take gigabytes for a batch of long texts. They never exist at
once: the vocabulary is processed in slices that stay in the processor's cache. Activations grow with the logit, so they
are applied after the maximum, once for each term instead of once for each token and term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.encode.models.heads import Head

SLICE = 4112
"""The number of terms whose logits are computed together. With 4,096, the logits of a term would be a power of two
apart, so few of them would fit into the processor's cache at once, and their maximum would take several times as long.
"""


def pooled(
    hidden: Tensor,
    mask: Tensor,
    slices: Sequence[tuple[Tensor, Tensor]],
    head: Head,
    own: Tensor | None = None,
    block: int | None = None,
) -> Tensor:
    """The vectors of a batch, (batch, vocabulary).

    ``hidden``, (batch, tokens, width), are the decoder's inputs; the first token of each text is not padding. ``mask``,
    (batch, tokens), is 1 for tokens and 0 for padding. ``slices`` are the decoder's weights, (terms, width), and
    biases, (terms,), in parts. ``own``, (batch, vocabulary), are the logits of the texts' own terms, for poolings by
    maxima; see :func:`own_logits`. With a ``block``, the maxima of so many tokens are found together.
    """
    if head.pooling == "sum" and not head.signed:
        counted = mask[:, :, None].to(hidden.dtype)
        parts = [(activated(functional.linear(hidden, weight, bias), head) * counted).sum(1) for weight, bias in slices]
        return torch.cat(parts, -1)
    real = without_padding(hidden, mask)
    blocks = _in_blocks(real, block) if block else real
    own_parts = [None] * len(slices) if own is None else own.split([len(bias) for _, bias in slices], -1)
    parts = [
        pooled_extremes(
            _of_tokens(torch.amax, products),
            _of_tokens(torch.amin, products) if head.signed else None,
            bias,
            head,
            own_part,
        )
        for (weight, bias), own_part in zip(slices, own_parts, strict=True)
        for products in [functional.linear(blocks, weight)]
    ]
    return torch.cat(parts, -1)


def without_padding(hidden: Tensor, mask: Tensor) -> Tensor:
    """The hidden states with a copy of the first token in place of padding, which changes no maximum and no minimum.

    The copy gets no gradient: among equal logits the first counts. Masking the hidden states is cheaper than masking
    logits, and multiplying by 0 would make padding win over negative logits.
    """
    return torch.where(mask[:, :, None] > 0, hidden, hidden[:, :1])


def _in_blocks(real: Tensor, block: int) -> Tensor:
    """Hidden states as (batch, blocks, tokens, width), filled up by copies of the first token."""
    tokens = real.shape[1]
    count = (tokens + block - 1) // block
    size = (tokens + count - 1) // count
    places = torch.arange(count * size, device=real.device)
    filled = real.index_select(1, torch.where(places < tokens, places, 0))
    return filled.unflatten(1, (count, size))


def _of_tokens(extreme: Callable[[Tensor, int], Tensor], products: Tensor) -> Tensor:
    """The maxima or minima over the tokens of each text, (batch, terms)."""
    found = extreme(products, -2)
    return extreme(found, 1) if found.dim() > 2 else found


def own_logits(ids: Tensor, mask: Tensor, hidden: Tensor, rows: Tensor, logits: Tensor) -> Tensor:
    """The logits of a text's own terms: ⟨h_i, E_t⟩ + o_t for the token t at i, and the largest of them for each term.

    The learned o_t replaces the decoder's bias, which is far below 0 to keep few terms active. So texts match by their
    own words, with weights that depend on the context.

    Args:
        ids: The tokens, (batch, tokens).
        mask: 1 for tokens, 0 for padding, (batch, tokens).
        hidden: The inputs of the decoder, (batch, tokens, width).
        rows: The decoder's weights E_t of the tokens, (batch, tokens, width).
        logits: o, (vocabulary,).

    Returns:
        (batch, vocabulary), with −∞ for terms that the text does not have.
    """
    own = (hidden * rows).sum(-1) + logits[ids]
    own = torch.where(mask > 0, own, -torch.inf)
    empty = torch.full((ids.shape[0], logits.shape[0]), -torch.inf, dtype=own.dtype, device=ids.device)
    return empty.scatter_reduce(1, ids, own, "amax")


def activated(logits: Tensor, head: Head) -> Tensor:
    """The positive side of the activation: log(1 + ReLU(out − ε)), Eq. 2 and 11, or log(1 + that value)."""
    value = torch.log1p(torch.relu(logits - head.epsilon if head.epsilon else logits))
    return torch.log1p(value) if head.activation == "log1p_relu" else value


def pooled_extremes(highest: Tensor, lowest: Tensor | None, bias: Tensor, head: Head, own: Tensor | None) -> Tensor:
    """The weights of terms, (batch, terms), from the maxima and minima of their products over the tokens.

    Args:
        highest: The maxima, (batch, terms).
        lowest: The minima, for signed heads.
        bias: The decoder's bias, (terms,), the same for all tokens.
        head: Activation and pooling; Eq. 12 (``absmax``) or 13 (``sum``) if it is signed.
        own: See :func:`pooled`.
    """
    highest = highest + bias
    positive = activated(highest if own is None else torch.maximum(highest, own), head)
    if lowest is None:
        return positive
    negative = activated(-(lowest + bias), head)
    if head.pooling == "sum":
        return positive - negative
    return torch.where(positive >= negative, positive, -negative)
