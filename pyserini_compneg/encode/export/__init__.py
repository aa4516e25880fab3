"""Exports of checkpoints to ONNX; torch is loaded only when one is made."""

from pyserini_compneg.encode.export.exporting import (
    export_model,
    exported_folder,
    model_hash,
    read_report,
    save_exported,
)

__all__ = ["export_model", "exported_folder", "model_hash", "read_report", "save_exported"]
