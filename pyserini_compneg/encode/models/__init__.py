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
from pyserini_compneg.encode.models.latents import (
    CONCEPTS_FILE,
    LATENT_FILE,
    LATENT_WEIGHTS,
    MOST_LATENTS,
    LatentHead,
    is_latent,
    read_concepts,
    read_latent_head,
)
from pyserini_compneg.encode.models.loading import quiet_transformers, static_weights
from pyserini_compneg.encode.models.options import ABLATIONS, PRECISIONS, ModelOptions
from pyserini_compneg.encode.models.token_networks import LAYERS_OF_TOKENS, TokenNetwork, token_network
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.support.vectors import index_term

__all__ = [
    "ABLATIONS",
    "CONCEPTS_FILE",
    "LATENT",
    "LATENT_FILE",
    "LATENT_WEIGHTS",
    "LAYERS_OF_TOKENS",
    "MINI",
    "MOST_LATENTS",
    "OWN_LOGITS_FILE",
    "PRECISIONS",
    "Checkpoint",
    "Head",
    "LatentHead",
    "ModelOptions",
    "NeuralSide",
    "Side",
    "StaticSide",
    "TextTokenizer",
    "TokenNetwork",
    "index_term",
    "is_latent",
    "load_checkpoint",
    "model_folder",
    "model_hash",
    "quiet_transformers",
    "read_checkpoint",
    "read_concepts",
    "read_latent_head",
    "static_weights",
    "token_network",
]
