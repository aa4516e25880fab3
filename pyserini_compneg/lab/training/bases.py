"""Bases of trainings: a masked language model, or a trunk that gets a head, and the encoders that are made from it."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pyserini_compneg.encode.models import (
    Checkpoint,
    Head,
    NeuralSide,
    StaticSide,
    index_term,
    model_folder,
    read_checkpoint,
    static_weights,
)
from pyserini_compneg.encode.networks import load_for_training, read_own_logits
from pyserini_compneg.lab.training.config import ModelConfig, TrainConfig
from pyserini_compneg.lab.training.encoder_module import EncoderModule, MaskedLanguageModel, StaticQueryModule
from pyserini_compneg.lab.training.examples import TrainingExample
from pyserini_compneg.support.errors import EncodingError, InputError

LENGTH = 256
"""The number of tokens that a model reads of a text, unless its base or the settings have a smaller limit."""

RARE_BIAS = -5.0
"""The initial bias of the decoder of a new head. It is below 0, so that few terms are active at the start."""

IDF_SCALE = 1 / 3
"""The initial factor of idf. With scores of some tens, like BM25's, the loss's softmax would saturate."""

BELOW = 0.01
"""The share of the terms of a passage that begin below the dead zone, if ε is chosen."""

DENSEST = 0.1
"""The share of the terms that may begin with a negative weight. FLOPS does not make denser vectors sparse."""

_SAMPLE = 64
"""The number of passages on which ε is chosen."""

_logger = logging.getLogger(__name__)


def build_modules(
    config: TrainConfig, sources: Sequence[Sequence[TrainingExample]]
) -> tuple[EncoderModule | StaticQueryModule, EncoderModule]:
    """The encoders of queries and documents before training. If both use the same network, they are one module."""
    settings, name = config.model, config.model.base
    folder = model_folder(name)
    head = Head.parse(settings.head) if settings.head else None
    base = load_base(folder, name, head, "document", settings.dropout)
    vocabulary = _vocabulary(base.tokenizer, sources) if settings.vocabulary == "training" else None
    lengths = _text_length(config, base.longest), vocabulary, config.training.max_length
    document = EncoderModule(base, head or base.head or Head(), *lengths)
    if document.head.signed:
        texts = sorted(set(_document_texts(sources)))
        sample = random.Random(config.training.seed).sample(texts, min(_SAMPLE, len(texts)))
        if head and settings.chooses_epsilon:
            head = replace(head, epsilon=chosen_epsilon(base, document, sample))
            _logger.info("head %s: ε is chosen on %d passages; see docs/how-to/training.md", head, len(sample))
            base = load_base(folder, name, head, "document", settings.dropout)
            document = EncoderModule(base, head, *lengths)
        _check_sparse(document, sample, name, settings)
    freeze(base.model, settings.frozen_layers, name)
    checkpoint = base_checkpoint(folder, name)
    if settings.query_encoder == "static":
        side = checkpoint.query if checkpoint else None
        weights = (
            _saved_weights(side, name, base.tokenizer, document.decoder.out_features)
            if isinstance(side, StaticSide)
            else idf_weights(base.tokenizer, _document_texts(sources), document.decoder.out_features)
        )
        return StaticQueryModule(base.tokenizer, weights, vocabulary), document
    if settings.query_encoder == "separate":
        query = load_base(folder, name, head, "query", settings.dropout)
        freeze(query.model, settings.frozen_layers, name)
        if query.tokenizer.get_vocab() != base.tokenizer.get_vocab():
            fault = "its queries and documents have different tokens"
            raise InputError(fault, where=name, remedy="name another model.base")
        return EncoderModule(query, head or query.head or base.head or Head(), *lengths), document
    if checkpoint and checkpoint.query != checkpoint.document:
        remedy = "set model.query_encoder to separate or static"
        raise InputError("has a separate encoder for queries", where=name, remedy=remedy)
    return document, document


def chosen_epsilon(base: MaskedLanguageModel, module: EncoderModule, texts: Sequence[str]) -> float:
    """The ε of a signed head, from the logits of a base with ε = 0.

    The share ``BELOW`` of the terms of a text has its smallest logit below the dead zone, and begins with a negative
    weight: below −2ε if an unsigned head becomes signed, which raises it by ε (see :func:`load_base`), otherwise below
    −ε. A head that is signed already keeps its ε.
    """
    if base.head and base.head.signed:
        return base.head.epsilon
    _, lowest = module.extreme_logits(texts)
    depths = -lowest.flatten().sort(descending=True).values  # quantile() takes 16 million numbers at most
    depth = max(float(depths[int((1 - BELOW) * (len(depths) - 1))]), 0.0)
    is_raised = base.head is not None or base.own_logits is None
    return float(f"{depth / 2 if is_raised else depth:.3g}")


def _check_sparse(module: EncoderModule, texts: Sequence[str], name: str, settings: ModelConfig) -> None:
    """Refuses a signed head whose vectors begin dense: unlearning thousands of negative weights fails."""
    _, lowest = module.extreme_logits(texts)
    share = float((lowest < -module.head.epsilon).float().mean())
    if share > DENSEST:
        head = f"{module.head.activation}:{module.head.pooling} and ε = {module.head.epsilon:g}"
        fault = f"with the head {head} a passage begins with negative weights for {share:.0%} of all terms"
        remedy = "name another model.base" if settings.chooses_epsilon else "leave ε out, and the base chooses it"
        raise InputError(f"{fault}, and {DENSEST:.0%} at most can be trained", where=name, remedy=remedy)


def _text_length(config: TrainConfig, longest: int) -> int:
    length = config.model.max_length or min(LENGTH, longest)
    if config.model.max_length is None and length < longest:
        said = "the model reads %d tokens of a text, its base can read %d; model.max_length sets another number"
        _logger.info(said, length, longest)
    if (config.training.max_length or 0) > length:
        raise InputError(f"training.max_length must be at most model.max_length, {length}")
    return length


def _vocabulary(tokenizer: Any, sources: Sequence[Sequence[TrainingExample]]) -> list[int]:
    """The ids of the terms of the texts, ascending."""
    texts = {*_document_texts(sources), *(one.query for examples in sources for one in examples)}
    encoded = tokenizer(sorted(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    ids = {token for tokens in encoded for token in tokens} - set(tokenizer.all_special_ids)
    if not ids:
        raise InputError("the texts of data have no term; give others, or set model.vocabulary to all")
    return sorted(ids)


def _document_texts(sources: Sequence[Sequence[TrainingExample]]) -> Iterator[str]:
    return (text for examples in sources for one in examples for text in (one.positive, *one.negatives))


def load_base(
    folder: Path, name: str, head: Head | None = None, which: str = "document", dropout: float | None = None
) -> MaskedLanguageModel:
    """Loads the network of a checkpoint for documents or queries, to train it with a head.

    A trunk without a masked-language-model head gets one. It is tied to the input embeddings, and its hidden layer
    starts as the identity. Logits of tokens for their own terms have no decoder bias, so that texts match by their
    words from the first step. For a signed head the bias starts at 0, halfway between the signs, and own terms start
    above the dead zone.

    If a trained head becomes signed, its logits are raised by ε: logits above 0 keep their weights, and logits from −2ε
    to 0 have no weight. Logits of terms that are unrelated to a text are far below 0.
    """
    side = neural_side(folder, name, which)
    model, tokenizer, longest, missing = load_for_training(side.folder if side else folder, name, dropout)
    decoder = model.get_output_embeddings()
    if tokenizer.pad_token_id is None:
        remedy = "give it one in tokenizer_config.json"
        raise InputError("its tokenizer has no padding token", where=name, remedy=remedy)
    tokenizer.padding_side = tokenizer.truncation_side = "right"  # as in inference
    if not missing:
        own_logits = _saved_own_logits(side, decoder.out_features, name) if side else None
        if head and head.signed and not (side and side.head.signed):
            for numbers in (decoder.bias.data, own_logits):
                if numbers is not None:
                    numbers += head.epsilon
        own_head = side.head if side and isinstance(side.head, Head) else None
        return MaskedLanguageModel(model, tokenizer, longest, own_logits, own_head)
    if trunk_weights := sorted(weight for weight in missing if weight.startswith(f"{model.base_model_prefix}.")):
        raise InputError(f"lacks the weights {trunk_weights[0]}, which do not belong to a head", where=name)
    head = head or Head()
    _start_head(model, missing, 0.0 if head.signed else RARE_BIAS)
    own_logits = torch.full((decoder.out_features,), float(head.epsilon))
    own_logits[tokenizer.all_special_ids] = RARE_BIAS
    return MaskedLanguageModel(model, tokenizer, longest, own_logits, None)


def freeze(model: Any, layers: int, name: str) -> None:
    """Excludes the embeddings and the first layers of a trunk from the training. 0 layers excludes nothing."""
    if not layers:
        return
    trunk, number = model.base_model, model.config.num_hidden_layers
    stacks = [part for part in trunk.modules() if isinstance(part, nn.ModuleList) and len(part) == number]
    if not stacks or layers > number:
        raise InputError(f"model.frozen_layers must be {number if stacks else 0} or less for {name}, got {layers}")
    for part in [getattr(trunk, "embeddings", trunk.get_input_embeddings()), *stacks[0][:layers]]:
        part.requires_grad_(False)


def base_checkpoint(folder: Path, name: str) -> Checkpoint | None:
    """The checkpoint of a sparse encoder; None for a trunk."""
    try:
        return read_checkpoint(folder, name)
    except EncodingError:
        if not (folder / "config.json").is_file():
            raise
        return None


def neural_side(folder: Path, name: str, which: str) -> NeuralSide | None:
    """The network of a sparse checkpoint for queries or documents, if it can be trained; None for a trunk."""
    checkpoint = base_checkpoint(folder, name)
    if checkpoint is None:
        return None
    side = checkpoint.query if which == "query" else checkpoint.document
    if not isinstance(side, NeuralSide):
        remedy = "set model.query_encoder to static" if which == "query" else "name another model.base"
        raise InputError(f"encodes a {which} without a network", where=name, remedy=remedy)
    if not isinstance(side.head, Head):
        raise InputError("is a latent model, which is not fine-tuned", where=name, remedy="name its base")
    if has := side.exported_in:
        raise InputError(f"comes exported in {has}, without the weights that a training starts from", where=name)
    if side.prompt or side.lowercase or side.own_terms:
        raise InputError(
            "has a prompt, converts texts to lower case, or weighs only the tokens of a text",
            where=name,
            remedy="this would be lost, so name another model.base",
        )
    return side


def _saved_own_logits(side: NeuralSide, width: int, name: str) -> Tensor | None:
    logits = read_own_logits(side, width)
    if logits is None:
        return None
    logits = torch.where(logits == -torch.inf, 0.0, logits)
    if side.own_logits and not torch.isfinite(logits).all():
        raise InputError(f"{side.own_logits.name} has numbers that are not finite; it is damaged", where=name)
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


def _saved_weights(side: StaticSide, name: str, tokenizer: Any, width: int) -> Tensor:
    """The weights of tokens in the queries of a checkpoint, (width,)."""
    if side.prompt:
        fault = "has a prompt for queries, which would be lost"
        raise InputError(fault, where=name, remedy="name another model.base")
    by_term = static_weights(side)
    weights = torch.zeros(width)
    for token, number in tokenizer.get_vocab().items():
        weights[number] = by_term.get(index_term(token), 0.0)
    if not weights.any():
        raise InputError("has no weights for the tokens of its tokenizer; it is damaged", where=name)
    return weights


def idf_weights(tokenizer: Any, texts: Iterable[str], width: int) -> Tensor:
    """BM25's idf times ``IDF_SCALE``, (width,): ln(1 + (N − n + ½) / (n + ½)) for a token in n of N texts.

    Equal texts count once. Special tokens weigh 0. The tokenizer may lack the last tokens of the model's ``width``.
    """
    distinct = sorted(set(texts))
    counts: Counter[int] = Counter()
    for ids in tokenizer(distinct, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]:
        counts.update(set(ids))
    number = len(distinct)
    idf = [math.log1p((number - counts[token] + 0.5) / (counts[token] + 0.5)) for token in range(width)]
    weights = IDF_SCALE * torch.tensor(idf)
    weights[tokenizer.all_special_ids] = 0.0
    return weights
