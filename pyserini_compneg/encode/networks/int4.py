"""Stores the matrices and embeddings of an exported model in 4 bits."""

from __future__ import annotations

from typing import Any

BLOCK = 64
"""The number of weights in a row that share a scale."""


def int4_model(model: Any) -> Any:
    """The model, an ONNX graph in fp32, with weights in 4 bits, in blocks of ``BLOCK``.

    onnxruntime rounds the activations of matrix products to 8 bits, in the same blocks.
    """
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig,
        MatMulNBitsQuantizer,
        QuantFormat,
    )

    config = DefaultWeightOnlyQuantConfig(
        block_size=BLOCK,
        is_symmetric=False,
        accuracy_level=4,  # activations in 8 bits
        quant_format=QuantFormat.QOperator,
        op_types_to_quantize=("MatMul", "Gather"),
        quant_axes=(("MatMul", 0), ("Gather", 1)),
    )
    quantizer = MatMulNBitsQuantizer(model, algo_config=config)
    quantizer.process()
    return quantizer.model.model
