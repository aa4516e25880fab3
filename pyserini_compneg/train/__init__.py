"""Training of sparse encoders that learn composition and negation, on sentence-transformers' trainer."""

from pyserini_compneg.train.config import TrainConfig, read_config
from pyserini_compneg.train.training import train

__all__ = ["TrainConfig", "read_config", "train"]
