"""Trains a network whose weights are rounded to 4 bits, so that it loses little when they are stored so.

A weight has one of 16 values, which are evenly spaced between the least and the largest weight of its block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.networks import BLOCK

_LEVELS = 15
_LEAST_STEP = 1e-8


@contextmanager
def rounded(module: nn.Module) -> Iterator[None]:
    """Rounds the weights inside the block, and restores them after it.

    The gradients that are computed inside are those at the rounded weights, and are applied to the exact ones
    (straight-through estimator; Bengio, Léonard, Courville 2013).
    """
    weights = _tables(module)
    exact = [weight.detach().clone() for weight in weights]
    round_weights(module)
    try:
        yield
    finally:
        _fill(weights, exact)


def round_weights(module: nn.Module) -> None:
    """Rounds the matrices and embeddings of a network."""
    weights = _tables(module)
    _fill(weights, [in_blocks(weight.detach()) for weight in weights])


def in_blocks(weight: Tensor) -> Tensor:
    """A rounded matrix. Its rows consist of blocks of ``BLOCK`` weights; the last may be shorter. Each block has a 0.

    >>> in_blocks(torch.linspace(-1, 0.5, 64).reshape(1, 64)).unique()
    tensor([-1.0000, -0.9000, -0.8000, -0.7000, -0.6000, -0.5000, -0.4000, -0.3000,
            -0.2000, -0.1000,  0.0000,  0.1000,  0.2000,  0.3000,  0.4000,  0.5000])
    """
    rows, width = weight.shape
    blocks = nn.functional.pad(weight, (0, -width % BLOCK)).reshape(rows, -1, BLOCK)
    least, largest = blocks.amin(2, keepdim=True).clamp(max=0), blocks.amax(2, keepdim=True).clamp(min=0)
    step = ((largest - least) / _LEVELS).clamp(min=_LEAST_STEP)
    zero = (-least / step).round()
    codes = ((blocks / step).round() + zero).clamp(0, _LEVELS)
    return ((codes - zero) * step).reshape(rows, -1)[:, :width]


def _tables(module: nn.Module) -> list[nn.Parameter]:
    return [layer.weight for layer in module.modules() if isinstance(layer, nn.Linear | nn.Embedding)]


def _fill(weights: list[nn.Parameter], values: list[Tensor]) -> None:
    with torch.no_grad():
        for weight, value in zip(weights, values, strict=True):
            weight.copy_(value)
