"""The flags with which commands choose how a model is run."""

from __future__ import annotations

import argparse
from typing import Any

from pyserini_compneg.cli import count, positive
from pyserini_compneg.models import BACKENDS, DEVICES, PRECISIONS, Head, ModelOptions

_NAMES = ("backend", "precision", "device", "max_length", "head", "top_terms", "threshold")


def add_model_options(parser: argparse.ArgumentParser, texts: str) -> argparse._ArgumentGroup:
    """Adds a group of flags; all default to None, so that it is known whether any was given.

    Args:
        parser: The command's.
        texts: What is encoded, ``documents`` or ``queries``.
    """
    group = parser.add_argument_group("models", f"how a model encodes the {texts}")
    add = group.add_argument
    add("--backend", choices=BACKENDS, help="onnx exports the model once (default), torch runs it as it is")
    add("--precision", choices=PRECISIONS, help="fp32 (default), int8 for processors, fp16 for GPUs")
    add("--device", choices=DEVICES, help="cpu (default) or cuda")
    add(
        "--max-length",
        type=count,
        metavar="N",
        help="tokens read of a text (default what the model takes, at most 512)",
    )
    add("--top-terms", type=count, metavar="N", help=f"keep the N heaviest terms of the {texts}' vectors")
    add("--threshold", type=positive, metavar="X", help="keep weights of at least X")
    add(
        "--head",
        metavar="ACTIVATION:POOLING[:EPSILON]",
        help="instead of what the model says: relu or log1p_relu with max or sum, snrelu with absmax or sum",
    )
    return group


def chosen_model_options(args: argparse.Namespace, batch_size: int | None = None) -> ModelOptions | None:
    """What was chosen; None if nothing was.

    Raises:
        EncodingError: A combination that there is none of.
    """
    values: dict[str, Any] = {name: getattr(args, name, None) for name in _NAMES} | {"batch_size": batch_size}
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return None
    if "head" in given:
        given["head"] = Head.parse(given["head"])
    return ModelOptions(**given)
