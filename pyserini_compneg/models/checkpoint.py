"""What a checkpoint says of itself: which of its parts encode documents and queries, and how.

Three layouts of the Hugging Face hub are read, from their JSON files alone: a masked language model, one with
OpenSearch's ``idf.json`` for its queries, and a folder of sentence-transformers' SparseEncoder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models.heads import Head

WEIGHT_FILES = ("model*.safetensors", "pytorch_model*.bin")
IDF_FILE = "idf.json"
LONGEST_INPUT = 512
"""Tokens of a text, unless a checkpoint says less; what follows is cut off."""

_ROUTER_FILES = ("router_config.json", "config.json")


@dataclass(frozen=True, slots=True)
class StaticSide:
    """Vectors without a network: each token of a text has a weight of its own.

    Attributes:
        folder: Where its tokenizer is.
        weights: A safetensors file with a tensor ``weight``, or JSON of ``{token: weight}``; None for ones.
        max_length: Tokens that are read of a text.
        prompt: What is put before each text.
    """

    folder: Path
    weights: Path | None
    max_length: int
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class NeuralSide:
    """Vectors of a masked language model.

    Attributes:
        folder: Where its configuration, weights and tokenizer are.
        head: What makes vectors of its logits.
        max_length: Tokens that are read of a text, those that the tokenizer adds included.
        prompt: What is put before each text.
        own_terms: If the vector is confined to the text's own tokens, and multiplied by their weights: those weights.
    """

    folder: Path
    head: Head
    max_length: int
    prompt: str = ""
    own_terms: StaticSide | None = None

    @property
    def files(self) -> list[Path]:
        """What the model is made of: its configuration, tokenizer and weights."""
        names = ("config.json", "tokenizer.json", "vocab.txt")
        return [file for file in map(self.folder.joinpath, names) if file.is_file()] + self.weights

    @property
    def weights(self) -> list[Path]:
        """The files of weights, in the safe format if there are any; transformers reads the same ones."""
        return next(filter(None, (sorted(self.folder.glob(pattern)) for pattern in WEIGHT_FILES)), [])


Side: TypeAlias = NeuralSide | StaticSide


class Checkpoint(NamedTuple):
    """A model for documents and queries.

    Attributes:
        name: As the user named it.
        document: How documents are encoded.
        query: How queries are encoded; equal to ``document`` for a shared encoder.
    """

    name: str
    document: Side
    query: Side


def read_checkpoint(folder: Path, name: str | None = None, head: Head | None = None) -> Checkpoint:
    """Reads what a checkpoint is.

    Args:
        folder: A local folder in one of the hub's layouts.
        name: The model's name, for messages and manifests; by default the folder's.
        head: Activation and pooling, instead of those that the checkpoint tells or, where it does not, SPLADE-max.

    Raises:
        EncodingError: No checkpoint, or one of another kind; the message says what is missing.
    """
    name = name or str(folder)
    if (folder / "modules.json").is_file():
        checkpoint = _sentence_transformers(folder, name)
    elif (folder / "config.json").is_file():
        checkpoint = _transformers(folder, name)
    else:
        raise EncodingError(f"{name}: no model: neither config.json nor modules.json in {folder}")
    if head is None:
        return checkpoint
    document, query = (replace(side, head=head) if isinstance(side, NeuralSide) else side for side in checkpoint[1:])
    return Checkpoint(name, document, query)


def _transformers(folder: Path, name: str) -> Checkpoint:
    side = NeuralSide(folder, Head(), _max_length(folder, name))
    _check_masked_lm(side, name)
    if not (folder / IDF_FILE).is_file():
        return Checkpoint(name, side, side)
    return Checkpoint(name, side, StaticSide(folder, folder / IDF_FILE, side.max_length))


def _sentence_transformers(folder: Path, name: str) -> Checkpoint:
    modules = _json(folder / "modules.json", list, name)
    try:
        chain = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in modules]
        routes = _routes(folder, chain, name)
    except (KeyError, TypeError, AttributeError) as cause:
        said = f"no {cause}" if isinstance(cause, KeyError) else cause
        raise EncodingError(f"{name}: modules.json or the router's file is damaged: {said}") from None
    prompts = _optional(folder / "config_sentence_transformers.json", name).get("prompts") or {}
    document, query = (
        _side([(kind, _inside(folder, path, name)) for kind, path in routes[side]], str(prompts.get(side) or ""), name)
        for side in ("document", "query")
    )
    return Checkpoint(name, document, query)


def _routes(folder: Path, chain: Sequence[tuple[str, str]], name: str) -> dict[str, list[tuple[str, str]]]:
    """The modules, by kind and path, that documents and queries go through."""
    routes: dict[str, list[tuple[str, str]]] = {"document": [], "query": []}
    for kind, path in chain:
        if kind not in ("Router", "Asym"):
            for modules in routes.values():
                modules.append((kind, path))
            continue
        place = _inside(folder, path, name)
        file = next((place / file for file in _ROUTER_FILES if (place / file).is_file()), place / _ROUTER_FILES[0])
        config = _json(file, dict, name)
        for side, modules in routes.items():
            if side not in config["structure"]:
                raise EncodingError(f"{name}: its router has no route {side!r}, only {', '.join(config['structure'])}")
            for part in config["structure"][side]:
                modules.append((str(config["types"][part]).rsplit(".", 1)[-1], f"{path}/{part}" if path else part))
    return routes


def _side(modules: Sequence[tuple[str, Path]], prompt: str, name: str) -> Side:
    """What a chain of modules does, if it is one that gives weights of terms."""
    kinds = [kind for kind, _ in modules]
    places = [place for _, place in modules]
    if kinds == ["SparseStaticEmbedding"]:
        return _static(places[0], prompt, name)
    if kinds[:2] not in (["Transformer", "SpladePooling"], ["MLMTransformer", "SpladePooling"]) or len(kinds) > 3:
        raise EncodingError(
            f"{name}: a model of {', '.join(kinds) or 'no modules'} gives no weights of terms; expected a "
            "masked language model and SpladePooling"
        )
    config = _optional(places[1] / "config.json", name)
    try:
        head = Head(
            config.get("activation_function", "relu"), config.get("pooling_strategy", "max"), config.get("epsilon", 0.0)
        )
    except (EncodingError, TypeError) as cause:
        raise EncodingError(f"{name}: {places[1].name}/config.json: {cause}") from None
    own_terms = None
    if len(kinds) == 3:
        if kinds[2] != "SparseStaticEmbedding":
            raise EncodingError(f"{name}: a model with {kinds[2]} after SpladePooling gives no weights of terms")
        own_terms = _static(places[2], "", name)
    side = NeuralSide(places[0], head, _max_length(places[0], name), prompt, own_terms)
    _check_masked_lm(side, name)
    return side


def _static(folder: Path, prompt: str, name: str) -> StaticSide:
    path = _optional(folder / "config.json", name).get("path")
    named = [folder / str(path), folder.parent / Path(str(path)).name] if path else sorted(folder.glob("*.safetensors"))
    root = os.path.normpath(folder.parent)  # not resolved: in the hub's cache, files are links to elsewhere
    inside = (file for file in named if file.is_file() and Path(os.path.normpath(file)).is_relative_to(root))
    weights = next(inside, None)
    if weights is None:
        raise EncodingError(
            f"{name}: {folder.name} has no weights of its tokens (model.safetensors, or what config.json names)"
        )
    return StaticSide(folder, weights, _max_length(folder, name), prompt)


def _check_masked_lm(side: NeuralSide, name: str) -> None:
    config = _json(side.folder / "config.json", dict, name)
    architectures = config.get("architectures") or []
    if not any(str(kind).endswith("ForMaskedLM") for kind in architectures):
        said = ", ".join(map(str, architectures)) or "a model of unknown architecture"
        raise EncodingError(
            f"{name}: {said} has no masked-language-model head, so it weighs no terms; name a SPLADE-like model"
        )
    if "auto_map" in config:
        raise EncodingError(f"{name}: needs code of its own to be run, which is not done; name another model")
    if not side.weights:
        raise EncodingError(f"{name}: {side.folder} has no weights (model.safetensors or pytorch_model.bin)")


def _max_length(folder: Path, name: str) -> int:
    """The least of what the model, its tokenizer and sentence-transformers say."""
    said = (
        _optional(folder / "config.json", name).get("max_position_embeddings"),
        _optional(folder / "tokenizer_config.json", name).get("model_max_length"),
        _optional(folder / "sentence_bert_config.json", name).get("max_seq_length"),
    )
    return int(min([LONGEST_INPUT, *(length for length in said if isinstance(length, (int, float)) and length > 2)]))


def _inside(folder: Path, path: str, name: str) -> Path:
    """A module's folder, which lies in the checkpoint."""
    place = (folder / path).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise EncodingError(f"{name}: its part {path!r} lies outside its folder")
    return place


def _optional(file: Path, name: str) -> Mapping[str, Any]:
    return _json(file, dict, name) if file.is_file() else {}


def _json(file: Path, kind: type, name: str) -> Any:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EncodingError(f"{name}: {file.name} is missing") from None
    except (OSError, ValueError, RecursionError) as cause:
        raise EncodingError(f"{name}: {file.name} cannot be read: {cause}") from None
    if not isinstance(value, kind):
        raise EncodingError(f"{name}: {file.name}: expected a JSON {kind.__name__}, got {type(value).__name__}")
    return value
