"""Takes the decoder, the last linear layer, off masked language models, whose classes write it in several ways."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models.checkpoint import weight_files

_logger = logging.getLogger(__name__)


class Decoder(NamedTuple):
    """The weights of a decoder, (terms, width), and its bias, (terms,)."""

    weight: Tensor
    bias: Tensor


def take_decoder(model: Any) -> Decoder | None:
    """The decoder of a masked language model, which then returns the decoder's inputs in place of logits.

    None if the decoder is not a linear layer. The caller checks the result, because unknown classes may differ.
    """
    kind = type(model).__name__
    if kind == "MobileBertForMaskedLM":  # its weights are the embeddings and a second table, side by side
        head = model.cls.predictions
        weight = torch.cat([head.decoder.weight.t(), head.dense.weight], 0).t().detach()
        model.cls.predictions = head.transform
        return Decoder(weight, head.decoder.bias.detach())
    if kind == "DebertaV2ForMaskedLM" and not model.config.legacy:  # its weights are the embeddings themselves
        head = model.lm_predictions.lm_head
        model.lm_predictions.lm_head = _Transform(head.dense, head.transform_act_fn, head.LayerNorm)
        return Decoder(model.get_input_embeddings().weight.detach(), head.bias.detach())
    decoder = model.get_output_embeddings()
    if not isinstance(decoder, nn.Linear):
        return None
    bias = decoder.bias
    if kind == "EsmForMaskedLM":  # its head adds the bias itself
        bias, model.lm_head.bias = model.lm_head.bias, nn.Parameter(torch.zeros(1))
    model.set_submodule(next(name for name, part in model.named_modules() if part is decoder), nn.Identity())
    return Decoder(decoder.weight.detach(), torch.zeros(decoder.out_features) if bias is None else bias.detach())


def load_bias(model: Any, folder: Path, name: str) -> bool:
    """Loads a decoder's bias that transformers 4 saved beside the decoder. Returns whether there was one.

    transformers 5 loads such a bias only for decoders that are tied to the embeddings.
    """
    beside = name.removesuffix(".decoder.bias") + ".bias"
    value = _tensor(folder, beside) if name.endswith(".decoder.bias") else None
    if value is None or value.shape != model.get_parameter(name).shape:
        return False
    model.get_parameter(name).data.copy_(value)
    _logger.info("%s: the bias of its decoder is %s, as transformers 4 saved it", folder, beside)
    return True


def _tensor(folder: Path, name: str) -> Any:
    """A tensor of a checkpoint's files of weights; None if there is none of this name."""
    from safetensors import safe_open

    for file in weight_files(folder):
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as tensors:
                if name in tensors.keys():  # noqa: SIM118  # no dictionary
                    return tensors.get_tensor(name)
        elif (value := torch.load(file, map_location="cpu", weights_only=True).get(name)) is not None:
            return value
    return None


class _Transform(nn.Module):  # type: ignore[misc]  # mypy has no types of torch
    """The layers of a head before its decoder. Further arguments, such as the embeddings, are ignored."""

    def __init__(self, dense: nn.Module, activation: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(dense, activation, norm)

    def forward(self, hidden: Tensor, *_: Any) -> Tensor:
        return self.layers(hidden)
