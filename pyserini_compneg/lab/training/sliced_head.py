"""SPLADE's head in training, without the tokens × vocabulary matrix of logits.

The weight of a term depends on the token with the largest logit, and in signed models also on the token with the
smallest. So the vocabulary is processed in slices, only the positions of the extremes are kept, and the gradient flows
back through these tokens only. It is the exact gradient of the plain head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyserini_compneg.encode.models import Head
from pyserini_compneg.encode.networks import pooled_extremes, without_padding

SLICE = 4096
"""The number of terms whose logits are computed together."""


def sliced_pooled(hidden: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, head: Head, own: Tensor | None) -> Tensor:
    """The vectors of a batch, (batch, terms); see :func:`pyserini_compneg.encode.networks.pooling.pooled`.

    ``hidden``, (batch, tokens, width), are the decoder's inputs. ``own``, (batch, terms), has one more logit for each
    term, or −∞; see ``pooling.own_logits``. The first token of each text is not padding. An unsigned ``sum`` is not
    supported, because every token contributes to it.

    Source: Krasakis et al., Eq. 2 (``max``), Eq. 11 with 12 (``absmax``) and 13 (``sum``).
    """
    extremes = _Extremes.apply(without_padding(hidden, mask), weight, head.signed)
    return pooled_extremes(extremes[0], extremes[1] if head.signed else None, bias, head, own)


def sliced_extremes(
    hidden: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, own: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The largest and the smallest logits of terms, both (batch, terms). The arguments are those of sliced_pooled."""
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
        for start in range(0, len(weight), SLICE):
            logits = (flat @ weight[start : start + SLICE].T.to(flat.dtype)).view(batch, tokens, -1)
            for side, (value, position) in enumerate([logits.max(1), logits.min(1)] if lowest else [logits.max(1)]):
                values[side, :, start : start + SLICE] = value
                positions[side, :, start : start + SLICE] = position
        ctx.save_for_backward(hidden, weight, positions)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient. It is sparse: 0 for terms that a text does not have."""
        hidden, weight, positions = ctx.saved_tensors
        tokens, width = hidden.shape[1:]
        flat = hidden.reshape(-1, width).to(gradient.dtype)
        d_hidden, d_weight = torch.zeros_like(flat), torch.zeros_like(weight, dtype=gradient.dtype)
        for start in range(0, len(weight), SLICE):
            part = slice(start, start + SLICE)
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
