"""Networks in torch, and their export as ONNX graphs. Importing this package loads torch."""

from pyserini_compneg.encode.networks.graph import dense_graph, write_graph
from pyserini_compneg.encode.networks.int4 import BLOCK
from pyserini_compneg.encode.networks.pooling import own_logits, sliced_extremes, sliced_pooled
from pyserini_compneg.encode.networks.torch_model import (
    TorchModel,
    load_for_training,
    load_trunk,
    read_own_logits,
)

__all__ = [
    "BLOCK",
    "TorchModel",
    "dense_graph",
    "load_for_training",
    "load_trunk",
    "own_logits",
    "read_own_logits",
    "sliced_extremes",
    "sliced_pooled",
    "write_graph",
]
