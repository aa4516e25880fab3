"""Checkpoints from which a killed training continues, with the same bits as without the kill."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pyserini_compneg.support.errors import InputError, OutputError, in_one_line
from pyserini_compneg.support.existing_work import START_ANEW


def restore(checkpoint: Path, states: Mapping[str, Any]) -> dict[str, Any]:
    """Restores a model, its optimiser and torch's random numbers from a checkpoint. Returns the other kept values.

    If there is no checkpoint, its folder is created, and the result is empty.
    """
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if not checkpoint.is_file():
        return {}
    with in_one_line(InputError, "is damaged", where=checkpoint, remedy=START_ANEW):
        saved: dict[str, Any] = torch.load(checkpoint, weights_only=True)
        for name, state in states.items():
            state.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
        return saved


def keep(checkpoint: Path, states: Mapping[str, Any], **more: Any) -> None:
    """Writes a checkpoint. It replaces the former checkpoint when it is complete."""
    saved = {name: state.state_dict() for name, state in states.items()}
    written = checkpoint.with_suffix(".new")
    try:
        torch.save(saved | more | {"random": torch.get_rng_state()}, written)
        os.replace(written, checkpoint)
    except (OSError, RuntimeError):  # torch reports a full disk only as a short write
        written.unlink(missing_ok=True)
        raise OutputError("cannot be written", where=checkpoint, remedy="free some space, and use --resume") from None


def check_finite(loss: torch.Tensor, norm: torch.Tensor, place: str) -> None:
    """Ends a training with an infinite or NaN loss or gradient norm. ``place`` names the step, e.g. ``step 3``."""
    if not torch.isfinite(loss + norm):
        fault = f"the loss of {place} is not a finite number"
        raise InputError(fault, remedy=f"choose a smaller learning_rate, and {START_ANEW}")
