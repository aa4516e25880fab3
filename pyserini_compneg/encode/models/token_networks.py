"""Finds the network of a model that gives a vector for each token: a dense model, or the trunk of a sparse one.

Sentence-transformers' layouts and those of PyLate for late interaction are read from JSON files only.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.encode.models.checkpoint import MODEL_FILE, text_files, weight_files
from pyserini_compneg.encode.models.configuration import (
    MODULES_FILE,
    SENTENCE_FILE,
    TextSettings,
    missing_file,
    optional_json,
    part_folder,
    required_json,
    text_settings,
)
from pyserini_compneg.support.errors import EncodingError

LAYERS_OF_TOKENS = ("pylate.models.Dense.Dense", "pylate.models.Dense")
"""The classes of linear layers that PyLate names in ``modules.json``. Their weights are read; they are never run."""

_NETWORKS = ("Transformer", "MLMTransformer")
_OF_TEXTS = ("Pooling", "SpladePooling", "Normalize")
"""Modules after which there are vectors of texts, or that only change the lengths of vectors."""

_OTHER_HEADS = ("ForSequenceClassification", "ForCausalLM", "ForConditionalGeneration")


class TokenNetwork(NamedTuple):
    """The network of a model, and what follows it for each token.

    Attributes:
        folder: The folder of the network's configuration, weights and tokenizer.
        settings: How texts are read.
        layers: The folders of the linear layers through which the vector of each token goes.
    """

    folder: Path
    settings: TextSettings
    layers: tuple[Path, ...] = ()

    @property
    def text_files(self) -> list[Path]:
        """The files that say how texts are read: those of the tokenizer, and the settings of sentence-transformers."""
        settings = self.folder / SENTENCE_FILE
        files = [file for file in text_files(self.folder) if file.name != "config.json"]
        return [*files, settings] if settings.is_file() else files


def token_network(folder: Path, name: str) -> TokenNetwork:
    """The network of a folder in a layout of transformers, sentence-transformers or PyLate.

    Raises:
        EncodingError: The folder has another layout, or its model gives no vectors of tokens.
    """
    try:
        network, layers = _parts(folder)
        file = network / "config.json"
        if not file.is_file():
            raise missing_file(file, "no model: config.json is missing")
        kinds = required_json(file, dict).get("architectures") or []
        if other := next((kind for kind in kinds if str(kind).endswith(_OTHER_HEADS)), None):
            what = f"{other} is made for other things than vectors of tokens"
            raise EncodingError(what, remedy="name a dense model, a late-interaction model or a BERT-like encoder")
        if not weight_files(network):
            exported = (network / MODEL_FILE).is_file()
            what = "comes exported, without the weights" if exported else "no weights"
            raise EncodingError(f"{what} (model.safetensors or pytorch_model.bin)", remedy="name another model")
        return TokenNetwork(network, text_settings(network, "document"), layers)
    except EncodingError as error:
        raise error.at(name) from None


def _parts(folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """The folder of the network, and those of its layers for tokens."""
    if not (folder / MODULES_FILE).is_file():
        return folder, ()
    modules = required_json(folder / MODULES_FILE, list)
    try:
        chain = [(str(one["type"]).rsplit(".", 1)[-1], part_folder(folder, str(one["path"]))) for one in modules]
    except (TypeError, KeyError):
        what = f"{MODULES_FILE} is damaged: each module needs `type` and `path`"
        raise EncodingError(what, remedy="copy or download it again") from None
    kinds = [kind for kind, _ in chain]
    if not kinds or kinds[0] not in _NETWORKS:
        raise EncodingError(
            f"a model of {', '.join(kinds) or 'no modules'} gives no vectors of tokens in their context"
        )
    layers: list[Path] = []
    for kind, path in chain[1:]:
        if kind in _OF_TEXTS:
            break
        if kind != "Dense":
            raise EncodingError(f"{kind} after the network is not supported; expected Dense or Pooling")
        layers.append(_linear(path))
    return chain[0][1], tuple(layers)


def _linear(folder: Path) -> Path:
    """The folder of a linear layer, which must be nothing else."""
    config = optional_json(folder / "config.json")
    activation = str(config.get("activation_function", "torch.nn.Tanh")).rsplit(".", 1)[-1]
    if activation != "Identity" or config.get("use_residual"):
        what = "a residual connection" if activation == "Identity" else f"the activation {activation}"
        raise EncodingError(f"{folder.name} has {what}; expected a linear layer for tokens")
    return folder
