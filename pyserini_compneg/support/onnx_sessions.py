"""Sessions of onnxruntime that run the networks of encoders and readers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_compneg.support.processors import adds_int8_exactly

_EXACT_INT8 = "session.x64quantprecision", "1"
"""The option that prevents overflows in sums of int8 products. With it a model takes 1.6 times as long, even where none
could occur."""

_SLOW_FUSIONS = ["SkipLayerNormFusion"]
"""Fusions for GPUs that slow processors down: of a sum and the normalisation after it, which then has no vector code. A
model of MiniLM's size takes 14 % longer."""


def open_session(model: Path | bytes, threads: int, providers: Sequence[str] = ("CPUExecutionProvider",)) -> Any:
    """A session that gives the same whole-number products on every processor."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # warnings are only about optimisations, and errors are also raised
    if not adds_int8_exactly():
        options.add_session_config_entry(*_EXACT_INT8)
    content = model if isinstance(model, bytes) else str(model)
    slow = _SLOW_FUSIONS if set(providers) == {"CPUExecutionProvider"} else []
    return onnxruntime.InferenceSession(content, options, providers=list(providers), disabled_optimizers=slow)


def import_onnxruntime() -> Any:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # otherwise the import writes a file of ids
    import onnxruntime

    return onnxruntime
