"""Kernels of ONNX ops on JAX arrays, in a table for each family of ops.

A kernel takes the node, its inputs (None where an optional one is left out) and gives its outputs. Inputs that must be
known when the program is built (axes, shapes, bounds) are NumPy arrays; ``numbers`` refuses others. Semantics are those
of opset 13 and later. The witness is ``onnx.reference``; test/unit/onnx/kernels holds every row to it. An op without a
row here may have a body of ONNX's own (``shardpass/onnx/stablehlo/functions.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from shardpass.onnx.kernels import (
    casting,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    normalizations,
    pools,
    products,
    quantization,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shapes,
)
from shardpass.onnx.kernels.common import MOST_FOLDED, Kernel, Unsupported

_FAMILIES = (
    casting,
    convolutions,
    elementwise,
    indexing,
    normalizations,
    pools,
    products,
    quantization,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shapes,
)
KERNELS: Mapping[str, Kernel] = {op: kernel for family in _FAMILIES for op, kernel in family.KERNELS.items()}
CONTROL_KERNELS = control_flow.KERNELS

# the inputs of an op that shapes, axes and bounds are read from: they must be constant
READ_INPUTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys((op for op in KERNELS if op.startswith("Reduce")), (1,)),
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}

__all__ = ["CONTROL_KERNELS", "KERNELS", "MOST_FOLDED", "READ_INPUTS", "Unsupported"]
