"""The encoders of queries and documents as they are before training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from pyserini_compneg.encode.models import Head, StaticSide, model_folder
from pyserini_compneg.lab.training.config import TrainConfig
from pyserini_compneg.lab.training.encoder_module import EncoderModule
from pyserini_compneg.lab.training.examples import Example
from pyserini_compneg.lab.training.masked_lm import base_checkpoint, freeze, load_base
from pyserini_compneg.lab.training.static_query import StaticQueryModule, idf_weights, saved_weights
from pyserini_compneg.support.errors import InputError

LENGTH = 256
_logger = logging.getLogger(__name__)


def build_modules(
    config: TrainConfig, sources: Sequence[Sequence[Example]]
) -> tuple[EncoderModule | StaticQueryModule, EncoderModule]:
    """The encoders of queries and documents; one module if both use the same network.

    Args:
        config: What to train.
        sources: The examples of each source.

    Raises:
        EncodingError: A checkpoint that cannot be read.
        InputError: A checkpoint that cannot be trained with these settings.
    """
    folder, name = model_folder(config.model.base), config.model.base
    head = Head.parse(config.model.head) if config.model.head else None
    base = load_base(folder, name, head, "document", config.model.dropout)
    freeze(base.model, config.model.frozen_layers, name)
    vocabulary = _vocabulary(base.tokenizer, sources) if config.model.vocabulary == "training" else None
    length = config.model.max_length or min(LENGTH, base.longest)
    if config.model.max_length is None and length < base.longest:
        said = "the model reads %d tokens of a text, its base can read %d; model.max_length sets another number"
        _logger.info(said, length, base.longest)
    if (config.training.max_length or 0) > length:
        raise InputError(f"training.max_length must be at most model.max_length, {length}")
    lengths = length, vocabulary, config.training.max_length
    document = EncoderModule(base, head or base.head or Head(), *lengths)
    checkpoint = base_checkpoint(folder, name)
    if config.model.query_encoder == "static":
        side = checkpoint.query if checkpoint else None
        width = document.decoder.out_features
        weights = _static_weights(side if isinstance(side, StaticSide) else None, name, base.tokenizer, width, sources)
        return StaticQueryModule(base.tokenizer, weights, vocabulary), document
    if config.model.query_encoder == "separate":
        query = load_base(folder, name, head, "query", config.model.dropout)
        freeze(query.model, config.model.frozen_layers, name)
        if query.tokenizer.get_vocab() != base.tokenizer.get_vocab():
            raise InputError(f"{name}: its queries and documents have different tokens; name another model.base")
        return EncoderModule(query, head or query.head or base.head or Head(), *lengths), document
    if checkpoint and checkpoint.query != checkpoint.document:
        raise InputError(f"{name}: has a separate encoder for queries; set model.query_encoder to separate or static")
    return document, document


def _static_weights(
    side: StaticSide | None, name: str, tokenizer: Any, width: int, sources: Sequence[Sequence[Example]]
) -> Tensor:
    """The weights of the checkpoint, if it has any, else idf."""
    if side is None:
        texts = (text for examples in sources for one in examples for text in (one.positive, *one.negatives))
        return idf_weights(tokenizer, texts, width)
    if side.prompt:
        raise InputError(f"{name}: has a prompt for queries, which would be lost; name another model.base")
    weights = saved_weights(side, tokenizer, width)
    if not weights.any():
        raise InputError(f"{name}: has no weights for the tokens of its tokenizer; it is damaged")
    return weights


def _vocabulary(tokenizer: Any, sources: Sequence[Sequence[Example]]) -> list[int]:
    """The ids of the terms that the texts have, ascending."""
    texts = {text for examples in sources for one in examples for text in (one.query, one.positive, *one.negatives)}
    encoded = tokenizer(sorted(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    ids = {token for tokens in encoded for token in tokens} - set(tokenizer.all_special_ids)
    if not ids:
        raise InputError("the texts of data have no term; give others, or set model.vocabulary to all")
    return sorted(ids)
