"""What XLA must be told of a per-device program, since it does not find it out.

1. That the program is manual. XLA reads it off arguments and results and spreads it along uses. What is made of nothing
   (a constant, an iota, a random number, the device's own) and meets no argument is not reached: XLA then refuses the
   program, or aborts (``!IsManualLeaf()``, hlo_sharding.cc). So an op that is about devices says it itself there.

2. That an FFT is row-major. XLA's CPU client has no other, yet lets the layouts of what is beside an FFT reach it, and
   fails as it runs (``IsMonotonicWithDim0Major``, fft_thunk.cc): a collective along another dimension than the leading
   one wants that one to be the major. ``custom_call @LayoutConstraint``, as JAX writes it, ends this and costs
   nothing itself. Operand and result of an FFT have one layout, so that one constraint holds both.

Checked with jaxlib 0.10.2 and 0.12.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import MANUAL, SHARDING, make_custom_call
from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import every_op, operation

ACROSS_DEVICES = OPS | {"stablehlo.partition_id"}
ALONG = ("all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension")
LAYOUT = "LayoutConstraint"


def mark_manual(module: Any) -> None:
    """``partition_id``, and every collective that no argument reaches, is marked manual, in place. O(ops).

    Not all collectives: with such marks Shardy of jaxlib 0.12 aborts on modules that JAX hands it.
    """
    with module.context:
        manual = ir.StringAttr.get(MANUAL)
        reached: set[Any] = set()
        for op in every_op(operation(module)):
            for block in (block for region in op.regions for block in region.blocks):
                carried = zip(block.arguments, op.operands, strict=False) if op.name == "stablehlo.while" else ()
                outside = {inner for inner, outer in carried if outer not in reached}
                reached.update(value for value in block.arguments if value not in outside)
            if any(value in reached for value in op.operands):
                reached.update(op.results)
            elif op.name in ACROSS_DEVICES:
                op.attributes[SHARDING] = manual


def keep_row_major(module: Any) -> None:
    """Constrains the result of each FFT, in place, where a collective could give it another layout. O(ops)."""
    ops = list(every_op(operation(module)))
    transforms = [op for op in ops if op.name == "stablehlo.fft" and op.results[0].type.rank > 1]
    if not transforms or not any(_is_along_minor(op) for op in ops):
        return
    for op in transforms:
        result = op.results[0]
        rank = result.type.rank
        with ir.InsertionPoint.after(op), op.location:
            minor_first = ir.Attribute.parse(f"[dense<{[*range(rank)][::-1]}> : tensor<{rank}xindex>]")
            layouts = {"operand_layouts": minor_first, "result_layouts": minor_first}
            kept = make_custom_call(LAYOUT, result, result.type, layouts)
        result.replace_all_uses_except(kept, operation(kept.owner))


def _is_along_minor(op: Any) -> bool:
    """Whether ``op`` is a collective along another dimension than the leading one."""
    along = (op.attributes[name].value for name in ALONG if name in op.attributes)
    return op.name in OPS and any(along)
