"""``shardpass-redistribute``: replaces redistributions by slices and collectives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.chosen import chosen
from shardpass.diagnostics import Place, ShardpassError
from shardpass.diagnostics.table_redistribute import ATTRIBUTE
from shardpass.ir.annotations import (
    CAUSE,
    FROM,
    GLOBAL_TYPE,
    REDISTRIBUTE,
    TO,
    custom_call_target,
    get_text,
    mesh_of,
    num_devices,
)
from shardpass.ir.for_xla import keep_row_major, mark_manual
from shardpass.ir.locations import place_of
from shardpass.ir.machines import machine_for
from shardpass.ir.reductions import channels
from shardpass.ir.tuples import restore_tuples
from shardpass.ir.walk import OpLists, named
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.redistribute import Plan, plan_redistribution
from shardpass.redistribute.program.lower import emit
from shardpass.redistribute.program.lower_parts import DeviceValues
from shardpass.redistribute.terms.limit import read_limit
from shardpass.sharding import Mesh, Sharding, TupleSharding, parse_sharding


@register
@dataclass(frozen=True)
class Redistribute(ModulePass):
    """Replaces each ``stablehlo.custom_call @shardpass.redistribute`` by ops that compute its result from its operand.

    The op has the attributes ``shardpass.from`` and ``shardpass.to`` (sharding text), ``shardpass.global_type`` (the
    type of the whole array) and optionally ``shardpass.cause``. The new ops keep its location. Each collective gets the
    attribute ``shardpass.axes``, the mesh axes over which it runs, and keeps the cause. Axes have their names in the
    module's ``shardpass.mesh``, if any. Collectives that depend on no argument, and ``partition_id``, are marked
    manual, as XLA does not infer that. The result of an FFT is kept row-major by ``custom_call @LayoutConstraint`` if a
    collective runs along another dimension than the first: XLA's CPU client supports no other layout for FFTs, and
    fails. Custom calls whose tuples were split on import get their tuples back.

    Options:
        planner: "best" for the cheapest plan that shardpass finds, or "rink" for the method of Rink et al.
        machine: the machine for which planner best estimates the time of a plan, as `shardpass-propagate` takes it; ""
            for the one that the module names
        memory_limit: the most memory alive on a device during a step, such as 24MiB; "max" limits tiles instead, to the
            larger of the source tile and the target tile; "none" sets no limit

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
            %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[1,2]<=[2]}",
              shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>}
              : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
            %0 = "stablehlo.all_to_all"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
              concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
              split_count = 2 : i64, split_dimension = 0 : i64}>
              {shardpass.axes = "axis_0"} : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }
    """

    name = "shardpass-redistribute"
    summary = "each change of sharding becomes slices and collectives"

    planner: str = "best"
    machine: str = ""
    memory_limit: str = "max"
    shared = frozenset({"machine"})

    def run(self, module: Any) -> bool:
        mesh, devices = mesh_of(module), num_devices(module)
        terms = {
            "planner": self.planner,
            "machine": chosen(machine_for(module, self.name, self.machine)),
            "memory_limit": read_limit(self.memory_limit),
        }
        lists = OpLists(module.operation)
        calls_by_block = [
            [op for op in named([inside], ("stablehlo.custom_call",)) if custom_call_target(op) == REDISTRIBUTE]
            for inside in lists.blocks
        ]
        failures: list[ShardpassError] = []
        if any(calls_by_block):
            fresh = channels(module)
            with module.context:
                for calls in filter(None, calls_by_block):
                    known: DeviceValues = {}  # device numbers, which the plans of one block share
                    for op in calls:
                        try:
                            plan = _plan(op, terms, devices, mesh)
                        except ShardpassError as failure:
                            failures.append(_placed(failure, place_of(op.location)))
                        else:
                            _replace(op, plan, fresh, known)
            lists.changed()
        if failures:
            raise ShardpassError(*(d for failure in failures for d in failure.diagnostics))
        finished = [step(lists) for step in (mark_manual, keep_row_major, restore_tuples)]
        return any(calls_by_block) or any(finished)


def _placed(failure: ShardpassError, place: Place) -> ShardpassError:
    """Return ``failure`` with the source line of the op instead of an offset into a sharding's text."""
    return ShardpassError(*(dataclasses.replace(d, place=place) for d in failure.diagnostics))


def _replace(op: Any, plan: Plan, fresh: Iterator[int], known: DeviceValues) -> None:
    with ir.InsertionPoint(op), op.location:
        value = emit(plan.program, op.operands[0], fresh, cause=get_text(op, CAUSE) or "", known=known)
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _plan(op: Any, terms: dict[str, Any], devices: int | None, mesh: Mesh | None) -> Plan:
    """Plan the redistribution in the attributes of ``op``. Raises ShardpassError if its types are not the tiles."""
    for name in (FROM, TO, GLOBAL_TYPE):
        if name not in op.attributes:
            raise ATTRIBUTE.error(reason=f"has no attribute {name}")
    if len(op.operands) != 1 or len(op.results) != 1:
        raise ATTRIBUTE.error(reason=f"has {len(op.operands)} operands and {len(op.results)} results")
    try:
        whole = ir.RankedTensorType(ir.TypeAttr(op.attributes[GLOBAL_TYPE]).value)
    except ValueError:
        raise ATTRIBUTE.error(reason=f"has a {GLOBAL_TYPE} that is not a tensor type") from None
    source, target = (_sharding(get_text(op, name) or "", mesh) for name in (FROM, TO))
    plan = plan_redistribution(
        tuple(whole.shape), str(whole.element_type), source, target, num_devices=devices, **terms
    )
    ends = ((op.operands[0], plan.source_tile, "operand"), (op.results[0], plan.target_tile, "result"))
    for value, tile, side in ends:
        want = ir.RankedTensorType.get(list(tile), whole.element_type)
        if value.type != want:
            raise ATTRIBUTE.error(reason=f"has the {side} type {value.type}, but the tile is {want}")
    return plan


@lru_cache(maxsize=1024)
def _sharding(text: str, mesh: Mesh | None) -> Sharding | str:
    """Parse a sharding, in the axes of the module's mesh if these can express it."""
    sharding = parse_sharding(text)
    if mesh is None or isinstance(sharding, TupleSharding):
        return text
    return sharding.on(mesh) or sharding
