"""Models of the Hugging Face hub: reading checkpoints, running them, and the cache."""

from importlib import import_module
from typing import TYPE_CHECKING

from pyserini_compneg.encode.models.checkpoint import (
    OWN_LOGITS_FILE,
    Checkpoint,
    NeuralSide,
    Side,
    StaticSide,
    read_checkpoint,
)
from pyserini_compneg.encode.models.heads import ACTIVATIONS, Head
from pyserini_compneg.encode.models.hub import MINI, model_folder
from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.encode.models.options import ABLATIONS, BACKENDS, DEVICES, PRECISIONS, ModelOptions
from pyserini_compneg.encode.models.tokenizer import index_term

if TYPE_CHECKING:
    from pyserini_compneg.encode.models.pooling import own_logits, pooled_extremes
    from pyserini_compneg.encode.models.torch_model import load_for_training, read_own_logits

__all__ = [
    "ABLATIONS",
    "ACTIVATIONS",
    "BACKENDS",
    "DEVICES",
    "MINI",
    "OWN_LOGITS_FILE",
    "PRECISIONS",
    "Checkpoint",
    "Head",
    "ModelOptions",
    "NeuralSide",
    "Side",
    "StaticSide",
    "index_term",
    "load_for_training",
    "model_folder",
    "own_logits",
    "pooled_extremes",
    "quiet_transformers",
    "read_checkpoint",
    "read_own_logits",
]

_OF_TORCH = {
    "pooling": ("own_logits", "pooled_extremes"),
    "torch_model": ("load_for_training", "read_own_logits"),
}


def __getattr__(name: str) -> object:
    """Imports what needs torch on first use."""
    for module, names in _OF_TORCH.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
