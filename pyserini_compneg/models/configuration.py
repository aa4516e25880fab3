"""The JSON files that checkpoints of the hub have in common: what is put before texts, and how much of them is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_compneg.errors import EncodingError

LONGEST_INPUT = 512
"""Tokens of a text, unless a checkpoint says less; what follows is cut off."""

_PADDED_POSITIONS = (
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "longformer",
    "data2vec-text",
    "roberta-prelayernorm",
)
"""Models whose positions begin after that of padding, so that some of them are no token's."""

NO_LIMIT = 1_000_000
"""A number of tokens that no model reads; tokenizers without a limit say 10^30."""


def prompt_of(folder: Path, side: str, name: str) -> str:
    """What sentence-transformers puts before the texts of a side, ``query`` or ``document``.

    A model's prompt of another name (``passage``), or by default, is none of these: there both sides have a prompt, an
    empty one where the model has none.
    """
    config = optional_json(folder / "config_sentence_transformers.json", name)
    return str((config.get("prompts") or {}).get(side) or "")


def read_lengths(folder: Path, name: str, most: int = LONGEST_INPUT) -> tuple[int, int]:
    """How many tokens are read of a text by default, and how many can be.

    The default is what sentence-transformers was told, or the least that is said, and then at most ``most``.

    Args:
        folder: Of a network and its tokenizer.
        name: The model's name, for messages.
        most: Tokens.

    Raises:
        EncodingError: A configuration that cannot be read.
    """
    config = optional_json(folder / "config.json", name)
    positions = _length(config, "max_position_embeddings")
    if positions is not None and config.get("model_type") in _PADDED_POSITIONS:
        positions -= int(config.get("pad_token_id") or 0) + 1
    allowed = _length(optional_json(folder / "tokenizer_config.json", name), "model_max_length")
    told = _length(optional_json(folder / "sentence_bert_config.json", name), "max_seq_length")
    longest = min((limit for limit in (positions, allowed) if limit is not None), default=LONGEST_INPUT)
    return min(told or most, longest), longest


def _length(config: Mapping[str, Any], key: str) -> int | None:
    """A number of tokens, if there is one."""
    value = config.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 2 < value < NO_LIMIT:
        return None
    return int(value)


def part_folder(folder: Path, path: str, name: str) -> Path:
    """A module's folder.

    Raises:
        EncodingError: It does not lie in the checkpoint.
    """
    place = (folder / path).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise EncodingError(f"{name}: its part {path!r} lies outside its folder")
    return place


def optional_json(file: Path, name: str) -> Mapping[str, Any]:
    """The object of a file; empty where there is none.

    Raises:
        EncodingError: A file that is damaged.
    """
    return required_json(file, dict, name) if file.is_file() else {}


def required_json(file: Path, kind: type, name: str) -> Any:
    """What a file holds, of a kind.

    Raises:
        EncodingError: No file, or a damaged one; the message starts with the model's name.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EncodingError(f"{name}: {file.name} is missing") from None
    except (OSError, ValueError, RecursionError) as cause:
        raise EncodingError(f"{name}: {file.name} cannot be read: {cause}") from None
    if not isinstance(value, kind):
        raise EncodingError(f"{name}: {file.name}: expected a JSON {kind.__name__}, got {type(value).__name__}")
    return value
