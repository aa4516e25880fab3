"""Attention whose memory grows with the length of a text, not with its square.

transformers calls :func:`_attention` in place of its own function, in the networks that let it. In an export, a call is
one node, which a function of ``blocks`` computes for one block of queries after another. Where each token attends only
to those near it, as in two of three layers of ModernBERT, a block needs only the keys near it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.encode.models.checkpoint import LONG
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.support.errors import first_line

DOMAIN = "compneg"
NEAR_QUERIES = 128
_NAME = "compneg_blocks"
_TOLERANCE = 1e-3
_FAULTS = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What networks raise that cannot use this attention: they lack an attribute, or get another mask than they expect."""

_logger = logging.getLogger(__name__)


def use_blocks(model: Any, hidden: Callable[[], Tensor], folder: Path) -> None:
    """Gives a network this attention, if its ``hidden`` states of LONG tokens stay the same with it.

    Otherwise it stays eager, and the log says why.
    """
    with torch.inference_mode(), quiet_transformers():
        expected = hidden()
        try:
            fault = _exchange(model, lambda: torch.allclose(hidden(), expected, atol=_TOLERANCE, rtol=_TOLERANCE))
        except _FAULTS as error:
            fault = first_line(error)
        if fault:
            model.set_attn_implementation("eager")
            said = "%s: attention is not computed in blocks, so its memory may grow with the square of the length: %s"
            _logger.info(said, folder, fault)


def _exchange(model: Any, same: Callable[[], bool]) -> str:
    """Exchanges a network's attention. Returns what speaks against it, or an empty text."""
    from transformers import AttentionInterface, AttentionMaskInterface

    window = getattr(model.config, "sliding_window", None) or 0
    if window >= LONG - 1:
        return f"{LONG} tokens cannot show whether its sliding window of {window} stays the same"
    AttentionInterface.register(_NAME, _attention)
    AttentionMaskInterface.register(_NAME, _padding)
    model.set_attn_implementation(_NAME)
    if model.config._attn_implementation != _NAME:  # noqa: SLF001  # transformers has no public name for it
        return f"transformers cannot exchange it in {type(model).__name__}"
    return "" if same() else f"it changes the vectors of {type(model).__name__}"


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
    """The sums of values, (batch, tokens, heads, width). A token attends to those less than ``sliding_window`` away."""
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
    if not sliding_window:
        sums = functional.scaled_dot_product_attention(query, key, value, real[:, None, None, :], scale=scale)
        return sums.transpose(1, 2), None
    places = torch.arange(query.shape[2], device=query.device)
    blocks = []
    for start in range(0, len(places), NEAR_QUERIES):
        rows = slice(start, start + NEAR_QUERIES)
        near = slice(max(0, start - sliding_window + 1), rows.stop + sliding_window - 1)
        allowed = real[:, None, None, near] & ((places[rows, None] - places[near]).abs() < sliding_window)
        parts = query[:, :, rows], key[:, :, near], value[:, :, near]
        blocks.append(functional.scaled_dot_product_attention(*parts, allowed, scale=scale))
    return torch.cat(blocks, 2).transpose(1, 2), None
