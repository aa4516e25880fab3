"""Exported models, run by onnxruntime."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.encode.models.checkpoint import MODEL_FILE
from pyserini_compneg.support.errors import EncodingError, in_one_line
from pyserini_compneg.support.onnx_sessions import import_onnxruntime, open_session
from pyserini_compneg.support.processors import model_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyserini_compneg.encode.models.batching import Entries

INPUTS = ("input_ids", "token_type_ids", "attention_mask")
OUTPUTS = ("output_idx", "output_weights", "output_row")
"""Anserini's encoders read the first two outputs. They pass a single text, so the third output is all 0."""

_logger = logging.getLogger(__name__)


class OnnxModel:
    """An onnxruntime session. Several threads may use it.

    ``remedy`` is what the user can do if onnxruntime refuses the graph. For ``unpadded``, see ``SparseModel``. Batches
    that are ``side_by_side`` run on a thread each, as many as there are threads; otherwise each runs on all threads.
    """

    def __init__(
        self,
        folder: Path,
        device: str = "cpu",
        unpadded: bool = False,
        side_by_side: bool = False,
        remedy: str = "delete it, and it is made again",
    ) -> None:
        path, self.unpadded = folder / MODEL_FILE, unpadded
        self.together = model_threads() if side_by_side else 1
        providers, self.device = _providers(import_onnxruntime(), device)
        with in_one_line(EncodingError, "cannot be run", where=path, remedy=remedy):
            self._session = open_session(path, 1 if side_by_side else model_threads(), providers)
        if self.device == "cuda" and "CUDAExecutionProvider" not in self._session.get_providers():
            _logger.warning("onnxruntime could not start CUDA; models run on the processor")
            self.device = "cpu"
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if {*INPUTS} != {entry.name for entry in inputs} or {*OUTPUTS} > {entry.name for entry in outputs}:
            raise EncodingError(
                "its inputs and outputs belong to another kind of model", where=path, remedy="export it again"
            )

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Entries:
        inputs = {"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": mask}
        with in_one_line(EncodingError, f"the model failed on texts of {ids.shape[1]} tokens"):
            columns, weights, rows = self._session.run(list(OUTPUTS), inputs)
        return rows, columns, weights


def _providers(runtime: Any, device: str) -> tuple[list[str], str]:
    if device == "cpu":
        return ["CPUExecutionProvider"], "cpu"
    if "CUDAExecutionProvider" in runtime.get_available_providers():
        return ["CUDAExecutionProvider", "CPUExecutionProvider"], "cuda"
    _logger.warning("this onnxruntime has no CUDA (onnxruntime-gpu has it); models run on the processor")
    return ["CPUExecutionProvider"], "cpu"
