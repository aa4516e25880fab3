"""The encoders of queries and documents as they are before training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.models import Head, model_folder
from pyserini_compneg.train.config import TrainConfig
from pyserini_compneg.train.encoder_module import EncoderModule
from pyserini_compneg.train.examples import Example
from pyserini_compneg.train.masked_lm import (
    MaskedLanguageModel,
    freeze,
    has_two_encoders,
    load_base,
    static_query_side,
)
from pyserini_compneg.train.static_query import StaticQueryModule, starting_weights, weights_of


def build_modules(
    config: TrainConfig, sources: Sequence[Sequence[Example]]
) -> tuple[EncoderModule | StaticQueryModule, EncoderModule]:
    """The encoders of queries and documents; one module if both go through the same network.

    Args:
        config: What to train.
        sources: The examples of each source.

    Raises:
        EncodingError: A checkpoint that cannot be read.
        TrainingError: One that cannot be trained so.
    """
    folder, name = model_folder(config.model.base), config.model.base
    base = _loaded(config, folder, "document")
    vocabulary = _vocabulary(base.tokenizer, sources) if config.model.vocabulary == "training" else None
    document = _module(config, base, vocabulary)
    if config.model.query_encoder == "static":
        weight = _static_weights(config, folder, base.tokenizer, document.decoder.out_features, sources)
        return StaticQueryModule(base.tokenizer, weight, vocabulary), document
    if config.model.query_encoder == "separate":
        again = _loaded(config, folder, "query")
        if again.tokenizer.get_vocab() != base.tokenizer.get_vocab():
            raise TrainingError(f"{name}: its queries and documents have other tokens; name another base")
        return _module(config, again._replace(head=again.head or base.head), vocabulary), document
    if has_two_encoders(folder, name):
        raise TrainingError(
            f"{name}: has an encoder of its own for queries; set model.query_encoder to separate or static"
        )
    return document, document


def _head(config: TrainConfig) -> Head | None:
    """The head that is asked for."""
    return Head.parse(config.model.head) if config.model.head else None


def _loaded(config: TrainConfig, folder: Path, which: str) -> MaskedLanguageModel:
    base = load_base(folder, config.model.base, _head(config), which, config.model.dropout)
    freeze(base.model, config.model.frozen_layers, config.model.base)
    return base


def _module(config: TrainConfig, base: MaskedLanguageModel, vocabulary: Sequence[int] | None) -> EncoderModule:
    head = _head(config) or base.head or Head()
    return EncoderModule(base, head, config.model.max_length, vocabulary, config.training.max_length)


def _static_weights(
    config: TrainConfig, folder: Path, tokenizer: Any, width: int, sources: Sequence[Sequence[Example]]
) -> Tensor:
    """Those of the checkpoint, if it has some, else idf."""
    side = static_query_side(folder, config.model.base)
    if side is None:
        texts = (text for examples in sources for one in examples for text in (one.positive, *one.negatives))
        return starting_weights(tokenizer, texts, width)
    weights = weights_of(side, tokenizer, width)
    if not weights.any():
        raise TrainingError(f"{config.model.base}: weighs no token of its own tokenizer; it is damaged")
    return weights


def _vocabulary(tokenizer: Any, sources: Sequence[Sequence[Example]]) -> list[int]:
    texts = {text for examples in sources for one in examples for text in (one.query, one.positive, *one.negatives)}
    ids: set[int] = set()
    for encoding in tokenizer(sorted(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]:
        ids.update(encoding)
    if not ids - set(tokenizer.all_special_ids):
        raise TrainingError("the texts of data have no term; give others, or set model.vocabulary to all")
    return sorted(ids - set(tokenizer.all_special_ids))
