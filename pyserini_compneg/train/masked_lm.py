"""Where training starts: a masked language model, or a trunk that is given a head."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_compneg.errors import EncodingError, TrainingError
from pyserini_compneg.models.checkpoint import read_checkpoint
from pyserini_compneg.models.heads import Head
from pyserini_compneg.models.model_sides import NeuralSide

RARE_BIAS = -5.0
"""Where the decoder's bias of a new head starts: below 0, so that few terms are active before anything was learnt."""

OWN_LOGIT = 1.0
"""Where a token's logit for its own term starts in a new head: log(1 + 1) = 0.69, about what SPLADE weighs a word."""


class MaskedLanguageModel(NamedTuple):
    """A network to train.

    Attributes:
        model: A masked language model of transformers, its decoder a linear layer with a bias.
        tokenizer: Its tokenizer.
        own_logits: A logit of each token for its own term, (vocabulary,), for heads that have them.
        head: Activation and pooling, where the checkpoint tells.
    """

    model: Any
    tokenizer: Any
    own_logits: Tensor | None
    head: Head | None


def load_base(folder: Path, name: str, signed: bool) -> MaskedLanguageModel:
    """Loads a checkpoint to start from.

    A trunk without a masked-language-model head gets one that is tied to its input embeddings, whose hidden layer
    starts as the identity, and a learned logit of each token for its own term, so that texts match by their words
    from the first step on.

    Args:
        folder: Where it is.
        name: Its name, for messages.
        signed: Whether negative weights are to be learnt; then a new head's bias starts at 0, far from either sign.

    Raises:
        TrainingError: No BERT-like checkpoint.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging as reports

    side = _side(folder, name)
    place = side.folder if side else folder
    reports.disable_progress_bar()
    before = reports.get_verbosity()
    reports.set_verbosity_error()
    try:
        model, report = AutoModelForMaskedLM.from_pretrained(place, local_files_only=True, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    except Exception as cause:  # of torch, safetensors, transformers: without a common class
        line = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise TrainingError(f"{name}: no masked language model can be made of it: {line[:200]}") from None
    finally:
        reports.set_verbosity(before)
    decoder = model.get_output_embeddings()
    if not isinstance(decoder, nn.Linear) or decoder.bias is None:
        raise TrainingError(f"{name}: {type(model).__name__} has no linear decoder with a bias; name a BERT-like model")
    missing = set(report["missing_keys"])
    if not missing:
        return MaskedLanguageModel(model, tokenizer, _own_logits(side), side.head if side else None)
    if place != folder or not _is_head(model, missing):
        raise TrainingError(f"{name}: its weights lack {sorted(missing)[0]}, which is no part of a head")
    _start_head(model, missing, 0.0 if signed else RARE_BIAS)
    own = torch.full((decoder.out_features,), OWN_LOGIT)
    own[tokenizer.all_special_ids] = 0.0
    return MaskedLanguageModel(model, tokenizer, own, None)


def _side(folder: Path, name: str) -> NeuralSide | None:
    """The documents' side of a sparse checkpoint; None for a trunk."""
    try:
        side = read_checkpoint(folder, name).document
    except EncodingError:
        if not (folder / "config.json").is_file():
            raise
        return None
    return side if isinstance(side, NeuralSide) else None


def _own_logits(side: NeuralSide | None) -> Tensor | None:
    if side is None or side.own_logits is None:
        return None
    from safetensors.torch import load_file

    return torch.nan_to_num(load_file(side.own_logits)["logits"], neginf=0.0)


def _is_head(model: Any, missing: Iterable[str]) -> bool:
    """Whether all that is missing is outside the trunk."""
    return not any(name.startswith(f"{model.base_model_prefix}.") for name in missing)


def _start_head(model: Any, missing: Iterable[str], bias: float) -> None:
    """The layer before the decoder becomes the identity, the decoder's bias the one given."""
    decoder = model.get_output_embeddings()
    with torch.no_grad():
        for name, weight in model.named_parameters(remove_duplicate=False):
            if name not in missing or weight is decoder.weight:
                continue
            if weight.dim() == 2:
                nn.init.eye_(weight)
            else:
                weight.fill_(1.0 if name.endswith(("LayerNorm.weight", "layer_norm.weight")) else 0.0)
        decoder.bias.fill_(bias)
