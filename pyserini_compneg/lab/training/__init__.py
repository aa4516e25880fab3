"""Training of sparse encoders for composition and negation, and of readers of plain texts."""

from pyserini_compneg.lab.training.config import TrainConfig, read_config
from pyserini_compneg.lab.training.training import train

__all__ = ["TrainConfig", "read_config", "train"]
