"""Loads the weights of networks, with transformers, and of tokens. Code in a checkpoint is never run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyserini_compneg.encode.models.checkpoint import StaticSide, weight_files
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.support.errors import CompNegError, EncodingError, in_one_line, install_hint
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import index_term, is_number

_OF_ONE = "take config.json and the weights of one model"


def check_packages(extra: str) -> None:
    """Refuses weights that only torch and transformers can load, where these are missing; ``extra`` brings them."""
    if missing := [name for name in ("torch", "transformers") if find_spec(name) is None]:
        remedy = f"{install_hint(extra)}, or name a folder that export --output made"
        raise EncodingError(f"a checkpoint that is not exported needs {' and '.join(missing)}", remedy=remedy)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences the reports of transformers; faults are reported by this package."""
    from transformers.utils import logging as reports

    reports.disable_progress_bar()
    before = reports.get_verbosity()
    reports.set_verbosity_error()
    try:
        yield
    finally:
        reports.set_verbosity(before)


def load_masked_lm(
    folder: Path, name: object, error: type[CompNegError] = EncodingError, dropout: float | None = None, **options: Any
) -> tuple[Any, list[str]]:
    """A masked language model with 32-bit weights, and the names of the weights that the checkpoint lacks.

    First the network is built without weights, so that a fault of ``config.json`` is told from one of the weights.
    """
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM, __version__

    own: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    remedy = f"compare it with the model's source; this is transformers {__version__}"
    with (
        quiet_transformers(),
        in_one_line(error, "config.json describes no masked language model", where=name, remedy=remedy),
    ):
        config = AutoConfig.from_pretrained(folder, **own)
        if config.model_type == "big_bird":  # otherwise a short text would change the attention of later long ones
            config.attention_type = "original_full"
        for key, value in config.to_dict().items():
            if dropout is not None and "dropout" in key and type(value) in (int, float):
                setattr(config, key, dropout)
        with torch.device("meta"):
            asked = sum(weights.numel() for weights in AutoModelForMaskedLM.from_config(config).parameters())
    if asked > (held := sum(file.stat().st_size for file in weight_files(folder))):
        raise error(
            f"config.json describes {asked:,} weights, its files have {held:,} bytes", where=name, remedy=_OF_ONE
        )
    own |= {"config": config, "dtype": "float32", "output_loading_info": True, "ignore_mismatched_sizes": True}
    with quiet_transformers(), in_one_line(error, "its weights cannot be loaded", where=name, remedy=_OF_ONE):
        model, report = AutoModelForMaskedLM.from_pretrained(folder, **own, **options)
    for weights, has, described in sorted(report["mismatched_keys"]):
        what = f"{weights} has the shape {tuple(has)}, config.json describes {tuple(described)}"
        raise error(what, where=name, remedy=_OF_ONE)
    return model, sorted(report["missing_keys"])


def static_weights(side: StaticSide, tokenizer: TextTokenizer | None = None) -> dict[str, float]:
    """The weights of the terms of one side of a model.

    They are 0 or more: a negative weight would lower documents that contain a word of the query.

    Args:
        side: The side. Without a file of weights, each term weighs 1, except special tokens.
        tokenizer: The tokenizer of the side, if it is loaded already.

    Raises:
        EncodingError: The file cannot be read, or has a wrong weight.
    """
    file, tokenizer = side.weights, tokenizer or TextTokenizer(side.folder, side.max_length)
    if file is None:
        return {term: 1.0 for number, term in enumerate(tokenizer.terms) if number not in tokenizer.special}
    weights = _json_weights(file) if file.suffix == ".json" else _tensor_weights(file, tokenizer.terms)
    for term, weight in weights.items():
        if not is_number(weight) or not 0 <= weight <= sys.float_info.max:
            said = f"the weight of {shown(term)} must be a finite number, 0 or more, got {shown(weight)}"
            raise EncodingError(said, where=file)
    return {term: float(weight) for term, weight in weights.items()}


def _json_weights(file: Path) -> dict[str, float]:
    with in_one_line(EncodingError, f"{file}: expected JSON of tokens and their weights"):
        values = json.loads(file.read_text(encoding="utf-8"))
        return {index_term(token): weight for token, weight in values.items()}


def _tensor_weights(file: Path, terms: Sequence[str]) -> dict[str, float]:
    from safetensors.numpy import load_file

    with in_one_line(EncodingError, f"{file}: cannot be read"):
        weights = load_file(file)["weight"].astype("float64").tolist()
    if not isinstance(weights, list) or len(weights) < len(terms) or isinstance(weights[0], list):
        raise EncodingError(f"expected a weight for each of {len(terms):,} tokens", where=file)
    return dict(zip(terms, weights, strict=False))
