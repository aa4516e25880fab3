"""Exported models, run by onnxruntime."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models.batching import Entries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_FILE = "model.onnx"
INPUTS = ("input_ids", "token_type_ids", "attention_mask")
OUTPUTS = ("output_idx", "output_weights", "output_row")
"""The first two are those that Anserini's encoders read; with a single text, as there, the third is all 0."""

_logger = logging.getLogger(__name__)


class OnnxModel:
    """A session of onnxruntime. It may be used by several threads.

    Args:
        folder: What :func:`pyserini_compneg.export.export_model` made.
        device: ``cpu`` or ``cuda``; where onnxruntime has no CUDA, the processor is used, with a warning.

    Attributes:
        device: Where it runs.

    Raises:
        EncodingError: No onnxruntime, or a file that is damaged or of another kind.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        path = folder / MODEL_FILE
        try:
            self._session, self.device = open_session(path, device)
        except EncodingError as cause:
            raise EncodingError(f"{cause}; delete it, and it is made again") from None
        if {*INPUTS} != {entry.name for entry in self._session.get_inputs()} or {*OUTPUTS} > {
            entry.name for entry in self._session.get_outputs()
        }:
            raise EncodingError(f"{path}: its inputs and outputs are those of another kind of model; export it again")

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Entries:
        """See :class:`SparseModel`."""
        inputs = {"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": mask}
        columns, weights, rows = run_session(self._session, OUTPUTS, inputs)
        return Entries(rows, columns, weights)


def open_session(path: Path, device: str = "cpu") -> tuple[Any, str]:
    """A session of onnxruntime, and the device that it runs on.

    Raises:
        EncodingError: No onnxruntime, or a file that it cannot run.
    """
    runtime = _runtime()
    options = runtime.SessionOptions()
    if hasattr(os, "sched_getaffinity"):  # the processors that are ours, of which onnxruntime counts all
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
    options.log_severity_level = 3  # what it warns of concerns its own optimisations
    providers, found = _providers(runtime, device)
    try:
        session = runtime.InferenceSession(str(path), options, providers=providers)
    except Exception as cause:  # the classes that the library raises have no common one of their own
        raise EncodingError(f"{path}: cannot be run: {_first_line(cause)}") from None
    if found == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        _logger.warning("onnxruntime could not start CUDA; models run on the processor")
        found = "cpu"
    return session, found


def run_session(session: Any, outputs: Sequence[str], inputs: Mapping[str, NDArray[np.int64]]) -> list[Any]:
    """Some outputs of a model for a batch of texts.

    Raises:
        EncodingError: It fails.
    """
    try:
        found: list[Any] = session.run(list(outputs), dict(inputs))
    except Exception as cause:  # as in open_session
        tokens = inputs["input_ids"].shape[1]
        raise EncodingError(f"the model failed on texts of {tokens} tokens: {_first_line(cause)}") from None
    return found


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise EncodingError(
            "models need onnxruntime; pip install 'pyserini_compneg[onnx]', or choose --backend torch"
        ) from None
    return onnxruntime


def _providers(runtime: Any, device: str) -> tuple[list[str], str]:
    if device == "cpu":
        return ["CPUExecutionProvider"], "cpu"
    if "CUDAExecutionProvider" in runtime.get_available_providers():
        return ["CUDAExecutionProvider", "CPUExecutionProvider"], "cuda"
    _logger.warning("this onnxruntime has no CUDA (that is the package onnxruntime-gpu); models run on the processor")
    return ["CPUExecutionProvider"], "cpu"


def _first_line(cause: Exception) -> str:
    lines = str(cause).strip().splitlines()
    return lines[0][:200] if lines else type(cause).__name__
