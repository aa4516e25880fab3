"""Attention whose memory grows, in exports, with the length of a text, not with its square.

transformers calls :func:`_attention` in place of its own function, in the networks that let it. In an export, a call is
one node, which a function of ``blocks`` computes for one block of queries after another. Where each token attends only
to those near it, as in two of three layers of ModernBERT, a block needs only the keys near it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.encode.models.loading import quiet_transformers

DOMAIN = "compneg"
_NAME = "compneg_blocks"
_TOLERANCE = 1e-3


def use_blocks(model: Any, hidden: Callable[[], Tensor]) -> None:
    """Gives a network this attention, if its ``hidden`` states stay the same with it; otherwise it stays eager."""
    with torch.inference_mode(), quiet_transformers():
        expected = hidden()
        try:
            from transformers import AttentionInterface, AttentionMaskInterface

            AttentionInterface.register(_NAME, _attention)
            AttentionMaskInterface.register(_NAME, _padding)
            model.set_attn_implementation(_NAME)
            if torch.allclose(hidden(), expected, atol=_TOLERANCE, rtol=_TOLERANCE):
                return
        except Exception:  # noqa: BLE001, S110  # networks differ in what they need
            pass
        model.set_attn_implementation("eager")


def _padding(*_: Any, attention_mask: Tensor | None = None, **__: Any) -> Tensor | None:
    """The mask of padding, (batch, tokens), in place of a mask of all pairs of tokens."""
    return attention_mask


def _attention(
    _module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    real: Tensor,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The sums of values, (batch, tokens, heads, width). Tokens at a distance of ``sliding_window`` are out of it."""
    if repeats := query.shape[1] // key.shape[1] - 1:
        key, value = (part.repeat_interleave(repeats + 1, 1) for part in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if torch.onnx.is_in_onnx_export():
        batch, heads, tokens, width = query.shape
        one = ("near_attention", {"reach": sliding_window - 1}) if sliding_window else ("attention", {"heads": heads})
        inputs, shape = (query, key, value, real), (batch, tokens, heads, width)
        kind, attributes = f"{DOMAIN}::{one[0]}", {"scale": scale, **one[1]}
        made: Tensor = torch.onnx.ops.symbolic(kind, inputs, attributes, dtype=query.dtype, shape=shape, version=1)
        return made, None
    allowed = real[:, None, None, :]
    if sliding_window:
        places = torch.arange(query.shape[2], device=query.device)
        allowed = allowed & ((places[:, None] - places).abs() < sliding_window)
    sums = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=scale)
    return sums.transpose(1, 2), None
