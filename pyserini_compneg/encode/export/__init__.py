"""Exports of checkpoints to ONNX; torch is loaded only when one is made."""

from typing import TYPE_CHECKING

from pyserini_compneg.encode.export.exporting import (
    export_model,
    exported_folder,
    model_hash,
    read_report,
    save_exported,
)

if TYPE_CHECKING:
    from pyserini_compneg.encode.export.graph import dense_graph

__all__ = ["dense_graph", "export_model", "exported_folder", "model_hash", "read_report", "save_exported"]


def __getattr__(name: str) -> object:
    """Imports what needs torch on first use."""
    if name != "dense_graph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyserini_compneg.encode.export.graph import dense_graph

    return dense_graph
