"""The networks that a training starts from: a masked language model, or a trunk that is given a head."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models.checkpoint import Checkpoint, NeuralSide, read_checkpoint
from pyserini_compneg.encode.models.configuration import read_lengths
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.encode.models.loading import load_masked_lm, load_tokenizer
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.encode.models.torch_model import read_own_logits
from pyserini_compneg.support.errors import EncodingError, InputError

RARE_BIAS = -5.0
"""The first value of the decoder's bias of a new head: below 0, so that few terms are active at the start."""


class MaskedLanguageModel(NamedTuple):
    """A network to train.

    Attributes:
        model: A masked language model of transformers, its decoder a linear layer with a bias.
        tokenizer: Its tokenizer.
        longest: The number of tokens of a text that it can read.
        own_logits: Numbers that are added to tokens' logits for their own terms, (vocabulary,), for heads with them.
        head: Activation and pooling, if the checkpoint names them.
    """

    model: Any
    tokenizer: Any
    longest: int
    own_logits: Tensor | None
    head: Head | None


def base_checkpoint(folder: Path, name: str) -> Checkpoint | None:
    """How a sparse checkpoint encodes queries and documents; None for a trunk.

    Raises:
        EncodingError: No checkpoint at all.
    """
    try:
        return read_checkpoint(folder, name)
    except EncodingError:
        if not (folder / "config.json").is_file():
            raise
        return None


def load_base(
    folder: Path, name: str, head: Head | None = None, which: str = "document", dropout: float | None = None
) -> MaskedLanguageModel:
    """Loads a checkpoint to start from.

    A trunk without a masked-language-model head gets one. It is tied to the input embeddings, and its hidden layer
    starts as the identity. Logits of tokens for their own terms do without the decoder's bias, so that texts match by
    their words from the first step on. Where a trained head gets signs, its logits are raised by ε: those that
    were above 0 keep their weights, and those from 0 down to −2ε have none. Logits of terms that have nothing to do
    with a text are far below 0.

    Args:
        folder: Its folder.
        name: Its name, for messages.
        head: The head to train. For a signed one, the bias of a new decoder starts at 0, as far from either sign, and
            own terms start above the dead zone.
        which: ``query`` or ``document``, if the checkpoint has two encoders.
        dropout: The dropout, instead of the checkpoint's.

    Raises:
        EncodingError: A tokenizer of another model.
        InputError: A checkpoint that is not like BERT, or that processes texts in a way that is not trained here.
    """
    side = neural_side(folder, name, which)
    if side:
        folder = side.folder
    failed = f"{name}: cannot be loaded as a masked language model"
    model, missing = load_masked_lm(folder, failed, InputError, dropout)
    tokenizer = load_tokenizer(folder, failed, InputError)
    longest = read_lengths(folder, name)[1]
    decoder = model.get_output_embeddings()
    if not isinstance(decoder, nn.Linear) or decoder.bias is None:
        raise InputError(f"{name}: {type(model).__name__} has no linear decoder with a bias; name a BERT-like model")
    TextTokenizer(folder, longest).fit(decoder.out_features, name)  # the trained model will be read with it
    if tokenizer.pad_token_id is None:
        raise InputError(f"{name}: its tokenizer has no padding token; give it one in tokenizer_config.json")
    tokenizer.padding_side = tokenizer.truncation_side = "right"  # as in inference
    if not missing:
        own_logits = _saved_own_logits(side, decoder.out_features, name)
        if head and head.signed and not (side and side.head.signed):
            for numbers in (decoder.bias.data, own_logits):
                if numbers is not None:
                    numbers += head.epsilon
        return MaskedLanguageModel(model, tokenizer, longest, own_logits, side.head if side else None)
    if trunk_weights := sorted(weight for weight in missing if weight.startswith(f"{model.base_model_prefix}.")):
        raise InputError(f"{name}: lacks the weights {trunk_weights[0]}, which do not belong to a head")
    head = head or Head()
    _start_head(model, missing, 0.0 if head.signed else RARE_BIAS)
    own_logits = torch.full((decoder.out_features,), float(head.epsilon))
    own_logits[tokenizer.all_special_ids] = RARE_BIAS
    return MaskedLanguageModel(model, tokenizer, longest, own_logits, None)


def freeze(model: Any, layers: int, name: str) -> None:
    """Excludes the embeddings and the first layers of a trunk from the training; nothing if ``layers`` is 0.

    Raises:
        InputError: The trunk has fewer layers.
    """
    if not layers:
        return
    trunk, number = model.base_model, model.config.num_hidden_layers
    stacks = [part for part in trunk.modules() if isinstance(part, nn.ModuleList) and len(part) == number]
    if not stacks or layers > number:
        raise InputError(f"model.frozen_layers must be {number if stacks else 0} or less for {name}, got {layers}")
    for part in [getattr(trunk, "embeddings", trunk.get_input_embeddings()), *stacks[0][:layers]]:
        part.requires_grad_(False)


def neural_side(folder: Path, name: str, which: str) -> NeuralSide | None:
    """The network of a sparse checkpoint that encodes queries or documents; None for a trunk.

    Raises:
        EncodingError: No checkpoint at all.
        InputError: No network, one without its weights, or one that processes texts in a way that is not trained.
    """
    checkpoint = base_checkpoint(folder, name)
    if checkpoint is None:
        return None
    side = checkpoint.query if which == "query" else checkpoint.document
    if not isinstance(side, NeuralSide):
        remedy = "set model.query_encoder to static" if which == "query" else "name another model.base"
        raise InputError(f"{name}: encodes a {which} without a network; {remedy}")
    if has := side.exported_in:
        raise InputError(f"{name}: comes exported in {has}, without the weights that a training starts from")
    if side.prompt or side.lowercase or side.own_terms:
        raise InputError(
            f"{name}: has a prompt, converts texts to lower case, or weighs only the tokens of a text; this would be "
            "lost, so name another model.base"
        )
    return side


def _saved_own_logits(side: NeuralSide | None, width: int, name: str) -> Tensor | None:
    if not (side and side.own_logits):
        return None
    logits = read_own_logits(side.own_logits, width, side.head)
    logits = torch.where(logits == -torch.inf, 0.0, logits)
    if not torch.isfinite(logits).all():
        raise InputError(f"{name}: {side.own_logits.name} has numbers that are not finite; it is damaged")
    return logits


def _start_head(model: Any, missing: Iterable[str], bias: float) -> None:
    """Makes the layer before the decoder the identity, ties the decoder to the embeddings, and sets its bias."""
    decoder = model.get_output_embeddings()
    decoder.weight = model.get_input_embeddings().weight
    model.config.tie_word_embeddings = True
    with torch.no_grad():
        for name, weight in model.named_parameters(remove_duplicate=False):
            if name not in missing or weight is decoder.weight:
                continue
            if weight.dim() == 2:
                nn.init.eye_(weight)
            else:
                weight.fill_(1.0 if name.lower().endswith("norm.weight") else 0.0)
        decoder.bias.fill_(bias)
