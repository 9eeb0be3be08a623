"""After partitioning: ops that nothing uses any more are erased.

A result that is wanted elsewhere under another sharding may be read from a nearer copy, and a rewrite may build what
its op then does not need. A dead op costs time; a dead collective costs messages, and XLA aborts on some (an all_gather
of several operands that no result depends on is given no manual sharding). Pure ops go, and the collectives and
redistributions that shardpass made: all devices leave out the same ones. The user's own collectives stay.

O(ops).
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.annotations import CAUSE, REDISTRIBUTE, custom_call_target
from shardpass.ir.effects import may_be_erased
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.program.manual_regions import CONTROL_FLOW


def erase_unused(function: Any) -> None:
    """Erases them in ``function``, in the regions of its control flow too, users before what they use."""
    for block in reversed(list(walk_blocks(operation(function)))):
        if operation(block.owner).name not in ("func.func", *CONTROL_FLOW):
            continue
        for op in reversed([operation(op) for op in block.operations]):
            if _may_go(op) and all(next(iter(result.uses), None) is None for result in op.results):
                op.erase()


def _may_go(op: Any) -> bool:
    """Control flow may where all that is in it may: whether a loop ends is not an effect."""
    if op.name in CONTROL_FLOW:
        inner = [operation(o) for block in walk_blocks(op) for o in block.operations]
        return all(o.name == "stablehlo.return" or _may_go(o) for o in inner)
    if op.name == "stablehlo.rng":
        return True
    made = CAUSE in op.attributes or custom_call_target(op) == REDISTRIBUTE or op.name == "stablehlo.partition_id"
    return made or may_be_erased(op.name)
