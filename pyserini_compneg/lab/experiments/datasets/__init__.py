"""Datasets: collections, topics and relevance judgements, opened from their official files.

from pyserini_compneg.lab.experiments.datasets import open_dataset
dataset = open_dataset("data/filmsets")
topics, qrels = dataset.topics("dev"), dataset.qrels("dev")
"""

from typing import TYPE_CHECKING

from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.lab.experiments.datasets.opening import KINDS, open_dataset

if TYPE_CHECKING:
    from pyserini_compneg.lab.experiments.datasets.irds import register

__all__ = ["KINDS", "Dataset", "open_dataset", "register"]


def __getattr__(name: str) -> object:
    """Imports ``register`` on first use, because it needs ir_datasets."""
    if name != "register":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyserini_compneg.lab.experiments.datasets.irds import register

    return register
