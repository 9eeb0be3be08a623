"""What XLA must be told of a per-device program, since it does not find it out.

1. That the program is manual. XLA reads it off arguments and results and spreads it along uses. What is made of nothing
   (a constant, an iota, a random number, the device's own) and meets no argument is not reached: XLA then refuses the
   program, or aborts (``!IsManualLeaf()``, hlo_sharding.cc). So each op that is about devices says it itself.

Checked with jaxlib 0.10.2 and 0.12.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.collectives import KINDS
from shardpass.ir.tensors import every_op, operation
from shardpass.passes.annotations import MANUAL, SHARDING

ACROSS_DEVICES = frozenset(f"stablehlo.{kind}" for kind in (*KINDS, "partition_id"))


def mark_manual(module: Any) -> None:
    """Every collective and ``partition_id`` of ``module`` is marked manual, in place. O(ops)."""
    with module.context:
        manual = ir.StringAttr.get(MANUAL)
        for op in every_op(operation(module)):
            if op.name in ACROSS_DEVICES:
                op.attributes[SHARDING] = manual
