"""Replace collectives whose groups have one device each by their operands.

JAX lowers a manual region over axes of size 1 to the ops of its body, without the region: each value is a whole array.
The collectives of the body stay, in groups of one. XLA refuses such an all_reduce.

Cases, for collectives that name all devices by their global ids:

1. Groups of one, or a permutation from each device to itself: the operand.
2. A permutation without pairs: zeros, which a device that nobody sends to has.
3. Anything else stays. So does a collective over replicas, and one in which a device is in no group.

Cost: O(collectives).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.collectives import OPS, OPS_BY_GLOBAL_IDS
from shardpass.ir.walk import OpLists, named
from shardpass.ops.tiles.boxes import zeros

PERMUTE = "stablehlo.collective_permute"


def drop_groups_of_one(lists: OpLists, devices: int | None) -> None:
    """Replace each collective of case 1 or 2 in a program for ``devices``, in place."""
    if devices is None or lists.names.isdisjoint(OPS):
        return
    alone = [(op, value) for op in named(lists.blocks, OPS) if (value := _without(op, devices)) is not None]
    for op, value in alone:
        op.results[0].replace_all_uses_with(value)
        op.erase()
    if alone:
        lists.changed()


def _without(op: Any, devices: int) -> Any:
    """Return the value of ``op`` if it needs no communication, else None."""
    (operand,), (result,) = op.operands, op.results
    if operand.type != result.type or "channel_handle" not in op.attributes:
        return None
    if op.name == PERMUTE:
        pairs = np.array(op.attributes["source_target_pairs"]).reshape(-1, 2)
        if not len(pairs):
            with op.location, ir.InsertionPoint(op):
                return zeros(result.type.element_type, result.type.shape)
        itself = sorted(pairs[:, 0]) == list(range(devices)) and (pairs[:, 0] == pairs[:, 1]).all()
        return operand if itself else None
    if op.name in OPS_BY_GLOBAL_IDS and "use_global_device_ids" not in op.attributes:
        return None
    groups = np.array(op.attributes["replica_groups"])
    alone = groups.shape == (devices, 1) and sorted(groups[:, 0]) == list(range(devices))
    return operand if alone else None
