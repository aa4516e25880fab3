# mypy: ignore-errors
"""The functions of an ONNX file that compute attention in blocks of queries; see ``attention``.

onnxscript compiles them to ONNX, where values have any type. ``query``, ``key`` and ``value`` are (batch, heads,
tokens, width), and ``real`` is (batch, tokens), true for tokens and false for padding. The results are (batch, tokens,
heads, width).
"""

from __future__ import annotations

from typing import Any

from onnx import helper
from onnxscript import BOOL, FLOAT, INT32, script
from onnxscript import opset20 as op
from onnxscript.values import Opset

from pyserini_compneg.encode.networks.attention import DOMAIN
from pyserini_compneg.encode.networks.attention import NEAR_QUERIES as _NEAR_QUERIES

_domain = Opset(DOMAIN, 1)
_contrib = Opset("com.microsoft", 1)
_QUERIES = 512
_LEAST = -30000.0
"""What is added to the logits of padding. It is finite in 16 bits, so a text without tokens gives no NaN."""


@script(_domain, default_opset=op)
def attention(query: FLOAT, key: FLOAT, value: FLOAT, real: BOOL, scale: float, heads: int) -> FLOAT:
    """Each token attends to all tokens. Without padding onnxruntime has an operator, which works in blocks itself."""
    scaled = query * op.CastLike(scale, query)
    turned = op.Transpose(scaled, perm=[0, 2, 1, 3])
    if op.Cast(op.ReduceMin(op.Cast(real, to=INT32.dtype), keepdims=0), to=BOOL.dtype):
        queries = op.Reshape(turned, [0, 0, -1])
        keys = op.Reshape(op.Transpose(key, perm=[0, 2, 1, 3]), [0, 0, -1])  # in another form, they get no blocks
        values = op.Reshape(op.Transpose(value, perm=[0, 2, 1, 3]), [0, 0, -1])
        joined = _contrib.MultiHeadAttention(queries, keys, values, num_heads=heads, scale=1.0)
        mixed = op.Reshape(joined, op.Shape(turned))
    else:
        bias = op.CastLike(op.Where(op.Unsqueeze(real, [1, 2]), 0.0, _LEAST), query)
        mixed = op.Slice(turned, [0], [0], [1])
        count = op.Squeeze((op.Shape(query, start=2, end=3) + (_QUERIES - 1)) / _QUERIES)
        for number in range(count):
            start = op.Unsqueeze(number * _QUERIES, [0])
            rows = op.Slice(scaled, start, start + _QUERIES, [2])
            weights = op.Softmax(rows @ op.Transpose(key, perm=[0, 1, 3, 2]) + bias, axis=-1)
            mixed = op.Concat(mixed, op.Transpose(weights @ value, perm=[0, 2, 1, 3]), axis=1)
    return mixed


@script(_domain, default_opset=op)
def near_attention(query: FLOAT, key: FLOAT, value: FLOAT, real: BOOL, scale: float, reach: int) -> FLOAT:
    """Each token attends to those that are at most ``reach`` tokens away."""
    scaled = query * op.CastLike(scale, query)
    bias = op.CastLike(op.Where(op.Unsqueeze(real, [1, 2]), 0.0, _LEAST), query)
    tokens = op.Shape(query, start=2, end=3)
    mixed = op.Transpose(op.Slice(query, [0], [0], [2]), perm=[0, 2, 1, 3])
    count = op.Squeeze((tokens + (_NEAR_QUERIES - 1)) / _NEAR_QUERIES)
    far = op.CastLike(_LEAST, query)
    limit = op.Constant(value_int=reach)
    places = op.Range(0, op.Squeeze(tokens), 1)
    for number in range(count):
        start = op.Unsqueeze(number * _NEAR_QUERIES, [0])
        end = op.Min(start + _NEAR_QUERIES, tokens)
        first = op.Max(start - limit, 0)
        last = op.Min(end + limit, tokens)
        distances = op.Abs(op.Unsqueeze(op.Slice(places, start, end, [0]), [1]) - op.Slice(places, first, last, [0]))
        biases = op.Where(distances > limit, far, op.Slice(bias, first, last, [3]))
        rows = op.Slice(scaled, start, end, [2])
        keys = op.Slice(key, first, last, [2])
        weights = op.Softmax(rows @ op.Transpose(keys, perm=[0, 1, 3, 2]) + biases, axis=-1)
        sums = weights @ op.Slice(value, first, last, [2])
        mixed = op.Concat(mixed, op.Transpose(sums, perm=[0, 2, 1, 3]), axis=1)
    return mixed


def add_functions(model: Any) -> None:
    """Adds the functions that the nodes of a model call."""
    used = {node.op_type for node in model.graph.node if node.domain == DOMAIN}
    functions = [one.to_function_proto() for one in (attention, near_attention) if one.name in used]
    for part in (model, *functions) if functions else ():
        part.opset_import.append(helper.make_opsetid(_contrib.domain, _contrib.version))
    model.functions.extend(functions)
