"""Targets of custom calls that JAX and XLA define.

1. Annotations: the result is the operand, and the call says where or how it lies in memory. Any split passes through:
   ``@LayoutConstraint`` (``jax.experimental.layout``), ``@annotate_device_placement`` (``jax.device_put`` to a kind of
   memory), ``@MoveToHost`` and ``@MoveToDevice``. Some carry ``has_side_effect``, which keeps XLA from dropping them;
   a note on each tile is what it means on tiles.
2. ``@mhlo.topk``, the form of ``chlo.top_k`` in StableHLO's older artifacts, is split as that op is.
3. ``@TopK`` (XLA's own name) and ``@ApproxTopK`` (``jax.lax.approx_max_k``): rows are a batch, and the dimension that
   is ordered is replicated, since an approximate choice among candidates would differ from XLA's.

``@ApproxTopK`` names the ordered dimension in its configuration; it takes n arrays of one shape, then n starting
scalars, and returns n arrays that are shorter along that dimension.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import is_ranked, shape_of
from shardpass.ops.families.custom_call import LocalCall, define_target, leading, local_call, shared_rule
from shardpass.ops.families.sort import top_k
from shardpass.ops.model import OpModel

ANNOTATIONS = ("LayoutConstraint", "annotate_device_placement", "MoveToHost", "MoveToDevice")
CONFIG = "mhlo.backend_config"


def annotation(op: Any) -> OpModel[Any] | None:
    """Map every dimension of the only operand to that of the only result."""
    if len(op.operands) != 1 or len(op.results) != 1 or not is_ranked(op.results[0]):
        return None
    shape = shape_of(op.results[0])
    return local_call(leading(op, len(shape))) if shape_of(op.operands[0]) == shape else None


def portable_top_k(op: Any) -> OpModel[Any] | None:
    """Read the call as ``chlo.top_k`` if it selects the greatest elements, else as a batch of rows."""
    if "mhlo.attributes" not in op.attributes or len(op.operands) != 1 or len(op.results) != 2:
        return None
    attributes = ir.DictAttr(op.attributes["mhlo.attributes"])
    greatest = "largest" in attributes and bool(ir.BoolAttr(attributes["largest"]).value)
    rows = by_rows(op)
    fits = rows is not None and all(map(shape_of, (*op.operands, *op.results)))
    return top_k(op) if greatest and fits else rows


def by_rows(op: Any) -> OpModel[Any] | None:
    """Make all dimensions but the last, which is ordered, batch dimensions."""
    return _beside(op, len(shape_of(op.operands[0])) - 1) if len(op.operands) else None


def approximate_top_k(op: Any) -> OpModel[Any] | None:
    if CONFIG not in op.attributes or not isinstance(op.attributes[CONFIG], ir.DictAttr):
        return None
    config = ir.DictAttr(op.attributes[CONFIG])
    return _beside(op, int(ir.IntegerAttr(config["reduction_dim"]).value)) if "reduction_dim" in config else None


def _beside(op: Any, along: int) -> OpModel[Any] | None:
    """Make all dimensions except ``along`` parallel, in every operand and result except scalars.

    None where the arrays are not of one shape but for that dimension.
    """
    shapes = [shape_of(value) for value in (*op.operands, *op.results)]
    arrays = [shape for shape in shapes if shape]
    if not arrays or not 0 <= along < len(arrays[0]):
        return None
    beside = [(*shape[:along], *shape[along + 1 :]) for shape in arrays]
    if any(other != beside[0] for other in beside):
        return None
    return LocalCall(shared_rule(op, {dim: size for dim, size in enumerate(arrays[0]) if dim != along}))


for _target in ANNOTATIONS:
    define_target(_target, annotation)
define_target("mhlo.topk", portable_top_k)
define_target("TopK", by_rows)
define_target("ApproxTopK", approximate_top_k)
