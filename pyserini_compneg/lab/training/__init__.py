"""Training of sparse encoders for composition and negation, of latent models, and of readers of plain texts."""

from pyserini_compneg.lab.generation_settings import GenerationSettings
from pyserini_compneg.lab.latent_settings import LatentSettings
from pyserini_compneg.lab.training.config import TrainConfig, read_config
from pyserini_compneg.lab.training.generation import generate
from pyserini_compneg.lab.training.latent_training import train_latent
from pyserini_compneg.lab.training.training import train

__all__ = ["GenerationSettings", "LatentSettings", "TrainConfig", "generate", "read_config", "train", "train_latent"]
