"""Quantises the matrix products and the input embeddings of an exported model to 8 bits.

onnxruntime rounds the matrix products. It would keep the embeddings, half of a small model, in 32 bits, and store the
same numbers again in 8 bits for a tied decoder. Here both share one 8-bit table.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 127


def int8_model(dense: Path, path: Path, token_ids: str) -> Any:
    """An int8 model, made from an ONNX file in fp32. ``token_ids`` is the input that picks embeddings.

    Matrix products use whole numbers. Each column of the weights has a scale. The activations share one scale, which is
    computed at run time (dynamic quantisation). Each token's embedding has a scale. A tied decoder uses the embeddings
    as its weights. ``path`` is a temporary file.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(dense).graph
    tables = _embeddings(graph, token_ids)
    tied = {name: _tied(graph, values) for name, values in tables.items()}
    quantize_dynamic(
        dense, path, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"]
    )
    model = onnx.load(path)
    for name, values in tables.items():
        _round_embeddings(model.graph, name, values, tied[name])
    _without_signs(model.graph)
    used = {name for node in model.graph.node for name in node.input}
    kept = [entry for entry in model.graph.initializer if entry.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model


def _without_signs(graph: Any) -> None:
    """Adds 128 to the weights that several products share, as layers of ALBERT do, and to their zero points.

    The products stay the same. onnxruntime itself would do this to each product on processors with AVX2, whose sums of
    signed products may overflow, and fails at weights that it has changed already.
    """
    from onnx import numpy_helper

    products = [node for node in graph.node if node.op_type == "MatMulInteger"]
    uses = Counter(node.input[1] for node in products)
    shared = {name for node in products if uses[node.input[1]] > 1 for name in (node.input[1], node.input[3])}
    for entry in graph.initializer:
        values = numpy_helper.to_array(entry) if entry.name in shared else None
        if values is not None and values.dtype == np.int8:
            moved = (values.astype(np.int16) + 128).astype(np.uint8)
            entry.CopyFrom(numpy_helper.from_array(moved, entry.name))


def rounded(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The rows of a table as whole numbers from −127 to 127, and the scale of each row.

    >>> rounded(np.array([[0.5, -1.27], [0.0, 0.0]], np.float32))[0].tolist()
    [[50, -127], [0, 0]]
    """
    scales = np.abs(table).max(1) / np.float32(_LARGEST)
    scales[scales == 0] = 1
    return np.rint(table / scales[:, None]).astype(np.int8), scales


def _embeddings(graph: Any, token_ids: str) -> dict[str, NDArray[np.float32]]:
    """The tables of token embeddings, by the names of their initialisers."""
    from onnx import numpy_helper

    names = {node.input[0] for node in graph.node if node.op_type == "Gather" and node.input[1] == token_ids}
    return {entry.name: numpy_helper.to_array(entry) for entry in graph.initializer if entry.name in names}


def _tied(graph: Any, table: NDArray[np.float32]) -> dict[str, int]:
    """The weights of matrix products that are parts of the table, with the first row of each part."""
    from onnx import numpy_helper

    weights = {entry.name: entry for entry in graph.initializer if entry.dims[:1] == [table.shape[1]]}
    parts: dict[str, int] = {}
    start = 0
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        part = numpy_helper.to_array(weights[node.input[1]]).T
        if np.array_equal(part, table[start : start + len(part)]):
            parts[node.input[1]] = start
            start += len(part)
    return parts


def _round_embeddings(graph: Any, name: str, values: NDArray[np.float32], tied: dict[str, int]) -> None:
    """Replaces the embeddings and a tied decoder by one 8-bit table. The old table may remain unused."""
    from onnx import helper, numpy_helper

    names = f"{name}_int8", f"{name}_scales"
    table, scales = rounded(values)
    sizes = {}
    for entry in graph.initializer:
        weights = entry.name.removesuffix("_scale")
        if weights in tied and entry.name != weights:
            first, count = tied[weights], entry.dims[0]
            entry.CopyFrom(numpy_helper.from_array(scales[first : first + count], entry.name))
            sizes[weights] = count
    replaced = {f"{weights}_quantized" for weights in tied}
    kept = [entry for entry in graph.initializer if entry.name not in replaced]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    graph.initializer.extend([numpy_helper.from_array(table, names[0]), numpy_helper.from_array(scales, names[1])])

    nodes = []
    for weights, first in tied.items():  # onnxruntime computes these constant nodes once, on load
        bounds = [f"{weights}_first", f"{weights}_end"]
        for bound, row in zip(bounds, (first, first + sizes[weights]), strict=True):
            graph.initializer.append(numpy_helper.from_array(np.array([row]), bound))
        nodes.append(helper.make_node("Slice", [names[0], *bounds], [f"{weights}_rows"]))
        nodes.append(helper.make_node("Transpose", [f"{weights}_rows"], [f"{weights}_quantized"], perm=[1, 0]))
    graph.initializer.append(numpy_helper.from_array(np.array([-1]), f"{names[1]}_axis"))
    for node in graph.node:
        nodes.extend(_picked(node, *names) if node.op_type == "Gather" and node.input[0] == name else [node])
    del graph.node[:]
    graph.node.extend(nodes)


def _picked(gather: Any, table: str, scales: str) -> list[Any]:
    """The embeddings of tokens, from their whole numbers and scales."""
    from onnx import TensorProto, helper

    ids, (picked,) = gather.input[1], gather.output
    return [
        helper.make_node("Gather", [table, ids], [f"{picked}_int8"], axis=0),
        helper.make_node("Cast", [f"{picked}_int8"], [f"{picked}_whole"], to=TensorProto.FLOAT),
        helper.make_node("Gather", [scales, ids], [f"{picked}_scales"], axis=0),
        helper.make_node("Unsqueeze", [f"{picked}_scales", f"{scales}_axis"], [f"{picked}_scales_wide"]),
        helper.make_node("Mul", [f"{picked}_whole", f"{picked}_scales_wide"], [picked]),
    ]
