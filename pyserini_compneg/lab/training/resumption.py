"""Checkpoints by which a training that was killed goes on, to the same bits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pyserini_compneg.support.errors import InputError, OutputError, in_one_line

_ANEW = "start anew with --overwrite and without --resume"


def restore(checkpoint: Path, states: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a model, its optimiser and torch's random numbers the states of a checkpoint.

    Args:
        checkpoint: The file; its folder is made if it is not there.
        states: What has ``state_dict``, by name.

    Returns:
        What else was kept; nothing if there is no checkpoint.

    Raises:
        InputError: A damaged file.
    """
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if not checkpoint.is_file():
        return {}
    with in_one_line(InputError, "is damaged", where=checkpoint, remedy=_ANEW):
        saved: dict[str, Any] = torch.load(checkpoint, weights_only=True)
        for name, state in states.items():
            state.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
        return saved


def keep(checkpoint: Path, states: Mapping[str, Any], **more: Any) -> None:
    """Writes a checkpoint, which replaces the one before when it is complete.

    Raises:
        OutputError: It cannot be written.
    """
    saved = {name: state.state_dict() for name, state in states.items()}
    written = checkpoint.with_suffix(".new")
    try:
        torch.save(saved | more | {"random": torch.get_rng_state()}, written)
        os.replace(written, checkpoint)
    except (OSError, RuntimeError):  # torch says of a full disk only that it wrote too little
        written.unlink(missing_ok=True)
        raise OutputError(f"{checkpoint}: cannot be written; free some space, and use --resume") from None


def check_finite(loss: torch.Tensor, norm: torch.Tensor, place: str) -> None:
    """Ends a training whose loss or gradient is not finite.

    Args:
        loss: The loss.
        norm: The norm of the gradient.
        place: Such as ``step 3``.

    Raises:
        InputError: One of them is not.
    """
    if not torch.isfinite(loss + norm):
        raise InputError(f"the loss of {place} is not a finite number; choose a smaller learning_rate, and {_ANEW}")
