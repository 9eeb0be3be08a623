"""Split a collective of several operands into collectives of one operand.

StableHLO lets all_reduce, all_gather and all_to_all have several. XLA's partitioner refuses such an all_reduce in a
manual region, and reads such an all_to_all as HLO's tuple form, in which operand k is what device k is sent: other
numbers, and no error (jaxlib 0.10.2 and 0.12).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.blocks import copied_block
from shardpass.ir.reductions import channels
from shardpass.ir.tensors import every_op, operation

VARIADIC = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.all_to_all")
CHANNEL = "channel_handle"


def split_variadic(module: Any) -> None:
    """Split variadic collectives everywhere, in place; each new op has a separate channel. O(ops)."""
    variadic = [op for op in every_op(operation(module)) if op.name in VARIADIC and len(op.operands) > 1]
    if not variadic:
        return
    fresh = channels(module)
    for op in variadic:
        for operand, result in zip(op.operands, op.results, strict=True):
            result.replace_all_uses_with(_single(op, operand, result.type, next(fresh)))
        op.erase()


def _single(op: Any, operand: Any, kind: Any, channel: int) -> Any:
    attributes = {name: op.attributes[name] for name in op.attributes}
    with op.location, ir.InsertionPoint(op):
        if CHANNEL in attributes:
            kept = hlo.ChannelHandle(attributes[CHANNEL])
            attributes[CHANNEL] = hlo.ChannelHandle.get(channel, kept.channel_type)
        made = ir.Operation.create(
            op.name, results=[kind], operands=[operand], attributes=attributes, regions=len(op.regions)
        )
        for before, after in zip(op.regions, made.regions, strict=True):
            for block in before.blocks:
                copied_block(block, after)
    return made.results[0]
