"""Writes a network, its head and the selection of nonzero weights as one ONNX graph, in any precision."""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, TextIO

import torch

from pyserini_compneg.encode.models.loading import quiet_transformers
from pyserini_compneg.encode.models.onnx_model import INPUTS, OUTPUTS
from pyserini_compneg.encode.networks.int4 import int4_model
from pyserini_compneg.encode.networks.int8 import int8_model
from pyserini_compneg.support.errors import EncodingError, in_one_line, install_hint

_DENSE = "pooled"
_OPSET, _OPSET_OF_INT4 = 20, 21
_EXPORTING = Lock()


def write_graph(module: torch.nn.Module, precision: str, path: Path) -> None:
    """Writes a model as one ONNX file.

    The outputs are the columns, weights and rows of the nonzero entries, so neither logits nor whole vectors leave the
    graph. The outputs have the names that Anserini expects of a SPLADE model for queries.

    Args:
        module: The model.
        precision: ``fp32``; ``int8``, see :func:`~pyserini_compneg.encode.networks.int8.int8_model`; or
            ``fp16``, for GPUs.
        path: The file to write.

    Raises:
        EncodingError: The model cannot be exported, or a package is missing.
    """
    failed = in_one_line(
        EncodingError, "the model cannot be exported", remedy="choose --backend torch", passing=(OSError,)
    )
    with failed:
        model = dense_graph(module, precision, path.parent, _DENSE)
        _select(model.graph)
        _onnx().save(model, path)


def dense_graph(module: torch.nn.Module, precision: str, folder: Path, output: str) -> Any:
    """A network with its dense output as an ONNX graph.

    Args:
        module: A network with the three inputs of a BERT.
        precision: See :func:`write_graph`; or ``int4``, see
            :func:`~pyserini_compneg.encode.networks.int4.int4_model`.
        folder: A folder for temporary files.
        output: The name of the output.

    Raises:
        EncodingError: A package is missing.
    """
    onnx = _onnx()
    from pyserini_compneg.encode.networks.blocks import add_functions

    with _quietly(), tempfile.TemporaryDirectory(dir=folder) as temporary:
        dense, int8 = Path(temporary, "dense.onnx"), Path(temporary, "int8.onnx")
        _export(module, dense, output, _OPSET_OF_INT4 if precision == "int4" else _OPSET)
        model = int8_model(dense, int8, INPUTS[0]) if precision == "int8" else onnx.load(dense)
        if precision == "int4":
            model = int4_model(model)
        if precision == "fp16":
            from onnxruntime.transformers.float16 import convert_float_to_float16

            model = convert_float_to_float16(model, keep_io_types=True)
        add_functions(model)
        return without_traces(model)


def without_traces(model: Any) -> Any:
    """The graph without torch's annotations, such as the line of code and the folder of each node."""
    graph = model.graph
    noted = (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info)
    for part in (*noted, *model.functions, *(node for function in model.functions for node in function.node)):
        for name in ("doc_string", "metadata_props"):
            if name in part.DESCRIPTOR.fields_by_name:
                part.ClearField(name)
    return model


def _onnx() -> Any:
    try:
        import onnx
        import onnxscript  # noqa: F401  # torch's exporter needs it and reports its absence at length
    except ImportError as cause:
        raise EncodingError(f"export needs the package {cause.name}; {install_hint('export')}") from None
    return onnx


def _export(module: torch.nn.Module, path: Path, output: str, opset: int) -> None:
    ids = torch.ones(2, 5, dtype=torch.int64)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    try:
        torch.onnx.export(
            module,
            (ids, torch.zeros_like(ids), mask),
            str(path),
            input_names=list(INPUTS),
            output_names=[output],
            dynamic_shapes=dict.fromkeys(INPUTS, axes),
            opset_version=opset,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    except torch.onnx.OnnxExporterError as error:  # it describes the exporter's steps; its cause names the fault
        raise error.__cause__ or error from None


def _select(graph: Any) -> None:
    """Replaces the dense output by the nonzero entries."""
    from numpy import array
    from onnx import TensorProto, helper, numpy_helper

    prefix = _unused_prefix(graph)
    first, second, places, pairs = (f"{prefix}_{name}" for name in ("0", "1", "places", "pairs"))
    graph.initializer.extend(numpy_helper.from_array(array(axis), name) for axis, name in enumerate((first, second)))
    columns, weights, rows = OUTPUTS
    graph.node.extend(
        [
            helper.make_node("NonZero", [_DENSE], [places]),
            helper.make_node("Gather", [places, first], [rows], axis=0),
            helper.make_node("Gather", [places, second], [columns], axis=0),
            helper.make_node("Transpose", [places], [pairs], perm=[1, 0]),
            helper.make_node("GatherND", [_DENSE, pairs], [weights]),
        ]
    )
    del graph.output[:]
    kinds = {columns: TensorProto.INT64, weights: TensorProto.FLOAT, rows: TensorProto.INT64}
    graph.output.extend(helper.make_tensor_value_info(name, kinds[name], ["entries"]) for name in OUTPUTS)
    known = {entry.name for entry in graph.input}
    graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in INPUTS
        if name not in known
    )


def _unused_prefix(graph: Any) -> str:
    """The beginning of no name in a graph. torch's exporter numbers its own names, such as ``select_1``."""
    named = {entry.name for entry in (*graph.initializer, *graph.input)}
    named |= {name for node in graph.node for name in node.output}
    prefix = "nonzero"
    while any(name.startswith(prefix) for name in named):
        prefix += "_"
    return prefix


class _OtherThreads:
    """A stream that drops what the thread writes that made it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._thread = stream, get_ident()

    def write(self, text: str) -> int:
        return len(text) if get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps torch's exporter from the terminal: it prints the whole graph of a model that it cannot export.

    This thread's standard error is dropped, and its log up to warnings that reaches the root logger. In all threads,
    Python's warnings are ignored, torch logs errors only, and so does transformers, see :func:`quiet_transformers`.
    One thread exports at a time.
    """
    thread, reports = get_ident(), logging.getLogger("torch")

    def unrelated(record: logging.LogRecord) -> bool:  # onnxruntime uses the root logger
        return record.thread != thread or record.levelno > logging.WARNING

    with _EXPORTING, warnings.catch_warnings(), redirect_stderr(_OtherThreads(sys.stderr)), quiet_transformers():
        warnings.simplefilter("ignore")
        level = reports.level
        reports.setLevel(logging.ERROR)
        logging.root.addFilter(unrelated)
        try:
            yield
        finally:
            logging.root.removeFilter(unrelated)
            reports.setLevel(level)
