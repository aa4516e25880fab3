"""Where training starts: a masked language model, or a trunk that is given a head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_compneg.errors import EncodingError, TrainingError
from pyserini_compneg.models.checkpoint import Checkpoint, read_checkpoint
from pyserini_compneg.models.configuration import read_lengths
from pyserini_compneg.models.heads import Head
from pyserini_compneg.models.model_sides import NeuralSide, StaticSide
from pyserini_compneg.models.tokenizer import TextTokenizer
from pyserini_compneg.models.torch_model import read_own_logits

RARE_BIAS = -5.0
"""Where the decoder's bias of a new head starts: below 0, so that few terms are active before anything was learnt."""


class MaskedLanguageModel(NamedTuple):
    """A network to train.

    Attributes:
        model: A masked language model of transformers, its decoder a linear layer with a bias.
        tokenizer: Its tokenizer.
        longest: Tokens of a text that it can read.
        own_logits: What is added to tokens' logits for their own terms, (vocabulary,), for heads that have that.
        head: Activation and pooling, where the checkpoint tells.
    """

    model: Any
    tokenizer: Any
    longest: int
    own_logits: Tensor | None
    head: Head | None


def load_base(
    folder: Path, name: str, head: Head | None = None, which: str = "document", dropout: float | None = None
) -> MaskedLanguageModel:
    """Loads a checkpoint to start from.

    A trunk without a masked-language-model head gets one that is tied to its input embeddings, whose hidden layer
    starts as the identity, and what its tokens say of their own terms counts without the decoder's bias, so that texts
    match by their words from the first step on.

    Args:
        folder: Where it is.
        name: Its name, for messages.
        head: The head to train. For a signed one a new decoder's bias starts at 0, as far from either sign, and own
            terms start above the dead zone.
        which: ``query`` or ``document``: which of its encoders, where the checkpoint has two.
        dropout: Instead of the checkpoint's.

    Raises:
        EncodingError: A tokenizer of another model.
        TrainingError: No BERT-like checkpoint, or one that does more to texts than is trained here.
    """
    side = _side(folder, name, which)
    place = side.folder if side else folder
    model, tokenizer, missing = _loaded(place, name, dropout)
    longest = read_lengths(place, name)[1]
    decoder = model.get_output_embeddings()
    if not isinstance(decoder, nn.Linear) or decoder.bias is None:
        raise TrainingError(f"{name}: {type(model).__name__} has no linear decoder with a bias; name a BERT-like model")
    TextTokenizer(place, longest).fit(decoder.out_features, name)  # as when the trained model will be used
    if tokenizer.pad_token_id is None:
        raise TrainingError(f"{name}: its tokenizer has no padding token; give it one in tokenizer_config.json")
    tokenizer.padding_side = tokenizer.truncation_side = "right"  # as texts are read when it is used
    if not missing:
        own = None
        if side and side.own_logits:
            own = read_own_logits(side.own_logits, decoder.out_features, side.head)
            own = torch.where(own == -torch.inf, 0.0, own)
            if not torch.isfinite(own).all():
                raise TrainingError(f"{name}: {side.own_logits.name} has logits that are no numbers; it is damaged")
        return MaskedLanguageModel(model, tokenizer, longest, own, side.head if side else None)
    if inside := sorted(weight for weight in missing if weight.startswith(f"{model.base_model_prefix}.")):
        raise TrainingError(f"{name}: its weights lack {inside[0]}, which is no part of a head")
    head = head or Head()
    _start_head(model, missing, 0.0 if head.signed else RARE_BIAS)
    own = torch.full((decoder.out_features,), float(head.epsilon))
    own[tokenizer.all_special_ids] = RARE_BIAS
    return MaskedLanguageModel(model, tokenizer, longest, own, None)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keeps back what transformers tells of itself; what is wrong is said in this package's words."""
    from transformers.utils import logging as reports

    reports.disable_progress_bar()
    before = reports.get_verbosity()
    reports.set_verbosity_error()
    try:
        yield
    finally:
        reports.set_verbosity(before)


def freeze(model: Any, layers: int, name: str) -> None:
    """Leaves the embeddings and the first layers of a trunk as they are; with 0 layers, nothing.

    Raises:
        TrainingError: It has fewer.
    """
    if not layers:
        return
    trunk, number = model.base_model, model.config.num_hidden_layers
    stacks = [part for part in trunk.modules() if isinstance(part, nn.ModuleList) and len(part) == number]
    if not stacks or layers > number:
        raise TrainingError(f"model.frozen_layers must be {number if stacks else 0} or less for {name}, got {layers}")
    for part in [getattr(trunk, "embeddings", trunk.get_input_embeddings()), *stacks[0][:layers]]:
        part.requires_grad_(False)


def _loaded(folder: Path, name: str, dropout: float | None) -> tuple[Any, Any, set[str]]:
    """The model, its tokenizer, and the names of the weights that the checkpoint lacks."""
    from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            for key, value in config.to_dict().items():
                if dropout is not None and "dropout" in key and type(value) in (int, float):
                    setattr(config, key, dropout)
            model, report = AutoModelForMaskedLM.from_pretrained(
                folder, config=config, local_files_only=True, output_loading_info=True, dtype=torch.float32
            )
            return model, AutoTokenizer.from_pretrained(folder, local_files_only=True), set(report["missing_keys"])
    except Exception as cause:  # of torch, safetensors, transformers: without a common class
        line = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise TrainingError(f"{name}: no masked language model can be made of it: {line[:200]}") from None


def has_two_encoders(folder: Path, name: str) -> bool:
    """Whether a checkpoint encodes queries and documents differently."""
    checkpoint = _checkpoint(folder, name)
    return checkpoint is not None and checkpoint.query != checkpoint.document


def static_query_side(folder: Path, name: str) -> StaticSide | None:
    """How a checkpoint encodes queries, if it does without a network.

    Raises:
        TrainingError: It puts something before them, which is not learnt here.
    """
    checkpoint = _checkpoint(folder, name)
    if checkpoint is None or not isinstance(checkpoint.query, StaticSide):
        return None
    if checkpoint.query.prompt:
        raise TrainingError(f"{name}: has a prompt for queries, which would be lost; name another model.base")
    return checkpoint.query


def _checkpoint(folder: Path, name: str) -> Checkpoint | None:
    """What a sparse checkpoint is; None for a trunk."""
    try:
        return read_checkpoint(folder, name)
    except EncodingError:
        if not (folder / "config.json").is_file():
            raise
        return None


def _side(folder: Path, name: str, which: str) -> NeuralSide | None:
    checkpoint = _checkpoint(folder, name)
    if checkpoint is None:
        return None
    side = checkpoint.query if which == "query" else checkpoint.document
    if not isinstance(side, NeuralSide):
        remedy = "set model.query_encoder to static" if which == "query" else "name another model.base"
        raise TrainingError(f"{name}: encodes a {which} without a network; {remedy}")
    if side.prompt or side.lowercase or side.own_terms:
        raise TrainingError(
            f"{name}: has a prompt, puts texts into lower case, or weighs a text's own tokens only, which would be "
            "lost; name another model.base"
        )
    return side


def _start_head(model: Any, missing: Iterable[str], bias: float) -> None:
    """The layer before the decoder becomes the identity, the decoder that of the embeddings, its bias the one given."""
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
