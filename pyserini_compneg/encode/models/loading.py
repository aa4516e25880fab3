"""Loads the weights of networks, with transformers, and of tokens. Code in a checkpoint is never run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from pyserini_compneg.encode.models.checkpoint import StaticSide
from pyserini_compneg.encode.models.configuration import install_or_export
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import index_term, is_number

_QUIETING = Lock()
_BEFORE: list[tuple[int, bool]] = []
"""The verbosity of transformers, and whether it has progress bars, before each use of ``quiet_transformers``."""


def check_packages(extra: str) -> None:
    """Refuses weights that only torch and transformers can load, where these are missing; ``extra`` brings them."""
    if missing := missing_packages(extra):
        what = f"a checkpoint that is not exported needs {' and '.join(missing)}"
        raise EncodingError(what, remedy=install_or_export(extra))


def missing_packages(extra: str) -> list[str]:
    """The packages of the extra ``torch`` or ``export`` that are not installed."""
    needed = ("torch", "transformers", *(("onnx", "onnxscript") if extra == "export" else ()))
    return [name for name in needed if find_spec(name) is None]


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences transformers in all threads: its log below errors, and its progress bars and those of huggingface_hub.

    Faults are reported by this package. Where uses overlap, the last to end restores both as they were before the
    first.
    """
    from transformers.utils import logging as reports

    with _QUIETING:
        _BEFORE.append((reports.get_verbosity(), reports.is_progress_bar_enabled()))
        reports.set_verbosity_error()
        reports.disable_progress_bar()
    try:
        yield
    finally:
        with _QUIETING:
            (verbosity, has_bars), _ = _BEFORE[0], _BEFORE.pop()
            if not _BEFORE:
                reports.set_verbosity(verbosity)
                if has_bars:
                    reports.enable_progress_bar()


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
