"""Models of the Hugging Face hub: reading checkpoints, running them, and the cache."""

from pyserini_compneg.encode.models.checkpoint import Checkpoint, NeuralSide, Side, StaticSide, read_checkpoint
from pyserini_compneg.encode.models.heads import ACTIVATIONS, Head
from pyserini_compneg.encode.models.hub import MINI, model_folder
from pyserini_compneg.encode.models.options import ABLATIONS, BACKENDS, DEVICES, PRECISIONS, ModelOptions

__all__ = [
    "ABLATIONS",
    "ACTIVATIONS",
    "BACKENDS",
    "DEVICES",
    "MINI",
    "PRECISIONS",
    "Checkpoint",
    "Head",
    "ModelOptions",
    "NeuralSide",
    "Side",
    "StaticSide",
    "model_folder",
    "read_checkpoint",
]
