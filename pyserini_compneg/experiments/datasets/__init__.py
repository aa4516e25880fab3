"""Collections, topics and relevance judgements, and the datasets that they come in.

    from pyserini_compneg.experiments.datasets import open_dataset
    dataset = open_dataset("data/filmsets")
    topics, qrels = dataset.topics("dev"), dataset.qrels("dev")

The readers of datasets are loaded on first use, because commands that read only topics do not need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyserini_compneg.experiments.datasets.dataset import Dataset
    from pyserini_compneg.experiments.datasets.irds import register
    from pyserini_compneg.experiments.datasets.opening import KINDS, open_dataset

__all__ = ["KINDS", "Dataset", "open_dataset", "register"]

_HOMES = {"KINDS": "opening", "Dataset": "dataset", "open_dataset": "opening", "register": "irds"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
