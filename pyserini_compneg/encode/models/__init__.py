"""Models of the Hugging Face hub: reads their files, tokenizes texts and runs the models."""

from pyserini_compneg.encode.models.cache import model_hash
from pyserini_compneg.encode.models.checkpoint import (
    OWN_LOGITS_FILE,
    Checkpoint,
    NeuralSide,
    Side,
    StaticSide,
    read_checkpoint,
)
from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.encode.models.hub import LATENT, MINI, load_checkpoint, model_folder
from pyserini_compneg.encode.models.latents import LatentHead
from pyserini_compneg.encode.models.loading import quiet_transformers, static_weights
from pyserini_compneg.encode.models.options import ABLATIONS, PRECISIONS, ModelOptions
from pyserini_compneg.support.vectors import index_term

__all__ = [
    "ABLATIONS",
    "LATENT",
    "MINI",
    "OWN_LOGITS_FILE",
    "PRECISIONS",
    "Checkpoint",
    "Head",
    "LatentHead",
    "ModelOptions",
    "NeuralSide",
    "Side",
    "StaticSide",
    "index_term",
    "load_checkpoint",
    "model_folder",
    "model_hash",
    "quiet_transformers",
    "read_checkpoint",
    "static_weights",
]
