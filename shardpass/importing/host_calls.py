"""Mark host calls that one device makes for all devices, before propagation.

Problem. ``jax.debug.print``, ``io_callback`` and ``pure_callback`` lower to a custom call of whole arrays that runs
once, on the device that its sharding ``{maximal device=0}`` names. Calls without a rule run on every device, so without
this step it would run once for each device.

Cases, for a custom call that has a side effect or calls back into Python, if its target has no op model:

1. outside of manual regions: ``shardpass.once = 0`` replaces its sharding and names the device. Partitioning gives it
   whole operands and puts it under ``if partition_id == 0``; its results, zero elsewhere, are summed;
2. in a region that is manual over all axes: every device makes the call, as in JAX, so it stays unchanged;
3. on local shards (``partitioned=True``): every device makes the call with its tiles (``ops.families.host_targets``).
   The op gets a result for each operand, and so does ``@InspectSharding``, which makes no call;
4. in a region that is manual over some axes: refused, SP238.

On one device nothing is marked. O(ops of custom calls).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import HOST_CALL
from shardpass.ir.annotations import MANUAL, ONCE, SHARDING, custom_call_target, text
from shardpass.ir.effects import calls_host
from shardpass.ir.inspecting import inspections
from shardpass.ir.locations import place_of
from shardpass.ir.walk import OpLists, named
from shardpass.program.manual_regions import marked_scope
from shardpass.sharding import Sharding, TupleSharding, parse_sharding

CUSTOM_CALL = "stablehlo.custom_call"


def mark_host_calls(lists: OpLists) -> None:
    """Mark the calls of case 1 in a function. ``lists``: the ops of the function.

    Raises ShardpassError (SP238) for a call of case 4.
    """
    if CUSTOM_CALL not in lists.names:
        return
    calls = [op for op in named(lists.blocks, (CUSTOM_CALL,)) if calls_host(op)]
    silent = [op for op in inspections(lists) if not len(op.results) and marked_scope(op) != MANUAL]
    if not calls and not silent:
        return
    from shardpass.ops.families.custom_call import is_defined  # families are loaded when they are met
    from shardpass.ops.families.host_targets import PARTITIONED, with_results

    for op in silent:
        with_results(op)
        lists.changed()
    for op in calls:
        target = custom_call_target(op)
        if is_defined(target) and target not in PARTITIONED:
            continue
        scope = marked_scope(op)
        if scope == MANUAL:
            continue
        if scope is not None:
            reason = "stands in a region that is manual over some axes"
            raise HOST_CALL.error(place_of(op.location), target=target, reason=reason)
        if target in PARTITIONED:
            if SHARDING in op.attributes:
                del op.attributes[SHARDING]
            if not len(op.results):
                with_results(op)
                lists.changed()
            continue
        device = _device(op)
        if SHARDING in op.attributes:
            del op.attributes[SHARDING]
        op.attributes[ONCE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), device)


def _device(op: Any) -> int:
    """Return the device in the call's sharding; by default the first, as in XLA."""
    sharding = parse_sharding(text(op.attributes[SHARDING])) if SHARDING in op.attributes else None
    one = sharding.elements[0] if isinstance(sharding, TupleSharding) and sharding.elements else sharding
    return one.device if isinstance(one, Sharding) and one.is_maximal and one.device is not None else 0
