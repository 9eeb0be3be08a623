"""Move a host call into a branch that one device takes.

Example, of a ``pure_callback`` of a whole vector, on device 0:

    %r = custom_call @xla_ffi_python_cpu_callback(%x)

    %id = partition_id; %c = compare EQ, %id, 0
    %r = if %c { custom_call @xla_ffi_python_cpu_callback(%x) } else { zeros }

The completion that the plan lists (an all_reduce over all devices) then gives every device the result. XLA's own
partitioner does the same with a call that one device makes.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import MANUAL, ONCE, ORDER, SHARDING
from shardpass.ir.tensors import operation, splat
from shardpass.ops.tiles.summing import zero_text


def on_one_device(op: Any, device: int) -> list[Any]:
    """Move ``op`` into a branch that only ``device`` runs; the other devices get zeros. Returns the results."""
    types = [result.type for result in op.results]
    with ir.InsertionPoint(op), op.location:
        number = hlo.partition_id()
        asked = hlo.constant(
            ir.DenseElementsAttr.get_splat(number.type, ir.IntegerAttr.get(number.type.element_type, device))
        )
        chosen = hlo.IfOp(types, hlo.compare(number, asked, hlo.ComparisonDirectionAttr.get("EQ")))
        condition = operation(chosen)
        call, nothing = (region.blocks.append() for region in condition.regions)
        with ir.InsertionPoint(nothing):
            hlo.return_([splat(kind, zero_text(kind.element_type)) for kind in types])
        with ir.InsertionPoint(call):
            end = operation(hlo.return_(list(op.results)))
    op.move_before(end)
    for name in (ONCE, ORDER):
        if name in op.attributes:
            del op.attributes[name]
    op.attributes[SHARDING] = ir.StringAttr.get(MANUAL)  # XLA would give the call to a device of its own choice
    return list(condition.results)
