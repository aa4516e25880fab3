"""Heads in torch: turn the hidden states of tokens into one vector for each text.

The logits of all tokens for the whole vocabulary would take gigabytes for a batch of long texts. They never exist at
once: the vocabulary is processed in slices that stay in the processor's cache. Activations grow with the logit, so they
are applied after the maximum, once for each term instead of once for each token and term.

In training, the weight of a term depends on the token with the largest logit, and in signed models also on the token
with the smallest. So only the positions of the extremes are kept, and the gradient flows back through these tokens
only. It is the exact gradient of the plain head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.encode.models.heads import Head

SLICE = 4112
"""The number of terms whose logits are computed together. With 4,096, the logits of a term would be a power of two
apart, so few of them would fit into the processor's cache at once, and their maximum would take several times as long.
"""

TRAINING_SLICE = 4096
"""The same in training. Another number gives the same vectors, but gradients that are rounded otherwise."""


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

    Only signed heads have minima. They pool by Eq. 12 (``absmax``) or 13 (``sum``).
    """
    highest = highest + bias
    positive = activated(highest if own is None else torch.maximum(highest, own), head)
    if lowest is None:
        return positive
    negative = activated(-(lowest + bias), head)
    if head.pooling == "sum":
        return positive - negative
    return torch.where(positive >= negative, positive, -negative)


def sliced_pooled(hidden: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, head: Head, own: Tensor | None) -> Tensor:
    """The vectors of a batch in training, (batch, terms), as those of inference.

    Args:
        hidden: The inputs of the decoder, (batch, tokens, width). The first token of each text is not padding.
        mask: 1 for tokens, 0 for padding, (batch, tokens).
        weight: The decoder's weights, (terms, width).
        bias: The decoder's bias, (terms,).
        head: Activation and pooling, other than an unsigned ``sum``, to which every token contributes.
        own: One more logit for each term, or −∞, (batch, terms); see :func:`own_logits`.

    Source: Krasakis et al., Eq. 2 (``max``), Eq. 11 with 12 (``absmax``) and 13 (``sum``).
    """
    extremes = _Extremes.apply(without_padding(hidden, mask), weight, head.signed)
    return pooled_extremes(extremes[0], extremes[1] if head.signed else None, bias, head, own)


def sliced_extremes(
    hidden: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, own: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The largest and the smallest logits of terms, both (batch, terms).

    Args:
        hidden: The inputs of the decoder. All arguments have the shapes that they have in :func:`sliced_pooled`.
        mask: 1 for tokens, 0 for padding.
        weight: The decoder's weights.
        bias: The decoder's bias.
        own: One more logit for each term, or −∞.
    """
    highest, lowest = _Extremes.apply(without_padding(hidden, mask), weight, True) + bias
    return highest if own is None else torch.maximum(highest, own), lowest


class _Extremes(torch.autograd.Function):  # type: ignore[misc]  # mypy has no types of torch
    """The maximum, and on request the minimum, of ⟨h_i, E_j⟩ over the tokens i, (1 or 2, batch, terms)."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, lowest: bool) -> Tensor:
        batch, tokens, width = hidden.shape
        precise = torch.promote_types(hidden.dtype, torch.float32)
        values = torch.empty(1 + lowest, batch, len(weight), dtype=precise, device=hidden.device)
        positions = torch.empty(values.shape, dtype=torch.int16, device=hidden.device)
        flat = hidden.reshape(-1, width)
        for start in range(0, len(weight), TRAINING_SLICE):
            logits = (flat @ weight[start : start + TRAINING_SLICE].T.to(flat.dtype)).view(batch, tokens, -1)
            for side, (value, position) in enumerate([logits.max(1), logits.min(1)] if lowest else [logits.max(1)]):
                values[side, :, start : start + TRAINING_SLICE] = value
                positions[side, :, start : start + TRAINING_SLICE] = position
        ctx.save_for_backward(hidden, weight, positions)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient. It is sparse: 0 for terms that a text does not have."""
        hidden, weight, positions = ctx.saved_tensors
        tokens, width = hidden.shape[1:]
        flat = hidden.reshape(-1, width).to(gradient.dtype)
        d_hidden, d_weight = torch.zeros_like(flat), torch.zeros_like(weight, dtype=gradient.dtype)
        for start in range(0, len(weight), TRAINING_SLICE):
            part = slice(start, start + TRAINING_SLICE)
            side, row, term = (gradient[:, :, part] != 0).nonzero(as_tuple=True)
            if not len(row):
                continue
            token = row * tokens + positions[:, :, part][side, row, term]
            entries = gradient[:, :, part][side, row, term]
            rows = weight[part].to(gradient.dtype)
            size = (len(flat), len(rows))
            with torch.autocast(hidden.device.type, enabled=False):
                d_hidden += _sparse(token, term, entries, size) @ rows
                if ctx.needs_input_grad[1]:
                    d_weight[part] = _sparse(term, token, entries, size[::-1]) @ flat
        return d_hidden.view_as(hidden).to(hidden.dtype), d_weight.to(weight.dtype), None


def _sparse(rows: Tensor, columns: Tensor, entries: Tensor, size: tuple[int, ...]) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), entries, size, check_invariants=False)
