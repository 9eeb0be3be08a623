"""Custom calls of JAX that report tiles to the host: split as their operands are.

1. ``@xla_ffi_partitioned_python_*_callback`` (``jax.debug.callback(..., partitioned=True)``): each device calls Python
   with its tiles. Import gives the call results that nothing uses, one for each operand, so that operand i and result i
   are independent of the others; the results are removed here. The user sees the tiles: they are those of
   propagation, as in plain JAX, whatever a search would find cheaper (``settle-results``).
2. ``@InspectSharding`` (``jax.debug.inspect_array_sharding``): calls nobody at run time. What partitioning chose is
   written in ``shardpass.inspected`` on the module: the call's configuration, which leads to the user's function, the
   type of the array, its sharding, and the call's location. After compiling ``shardpass.jax`` calls the user's
   function; no other caller can, and a call without a configuration is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxlib.mlir import ir

from shardpass.ir.annotations import INSPECTED
from shardpass.ir.tensors import shape_of
from shardpass.ops.families.custom_call import define_target, leading
from shardpass.ops.families.elementwise import side_by_side
from shardpass.ops.model import LocalPlan, OpModel, Pointwise, Site
from shardpass.sharding import Sharding

PARTITIONED = ("xla_ffi_partitioned_python_cpu_callback", "xla_ffi_partitioned_python_gpu_callback")
LAYOUTS = "result_layouts"
CONFIG = "backend_config"


def with_results(op: Any) -> None:
    """Give a callback on local shards a result for each operand."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    if "operand_layouts" in attributes:
        attributes[LAYOUTS] = attributes["operand_layouts"]
    with ir.InsertionPoint(op), op.location:
        ir.Operation.create(op.name, [v.type for v in op.operands], list(op.operands), attributes)
    op.erase()


@dataclass(frozen=True, eq=False)
class PartitionedCallback(Pointwise):
    looks_on: ClassVar[bool] = True
    shows_tiles: ClassVar[bool] = True

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        site.discard()
        op = site.op
        attributes = {name: op.attributes[name] for name in op.attributes}
        if LAYOUTS in attributes:
            attributes[LAYOUTS] = ir.ArrayAttr.get([])
        with site.before():
            ir.Operation.create(op.name, [], list(op.operands), attributes)
        return list(op.operands)


def partitioned_callback(op: Any) -> OpModel[Any] | None:
    return PartitionedCallback(side_by_side(op).rule) if len(op.results) == len(op.operands) else None


@dataclass(frozen=True, eq=False)
class Inspected(Pointwise):
    looks_on: ClassVar[bool] = True

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        site.discard()
        op, split = site.op, plan.split
        module = op
        while module.parent is not None:
            module = module.parent
        known = list(module.attributes[INSPECTED]) if INSPECTED in module.attributes else []
        sharding = Sharding.tiled(split.mesh.mesh, [split.mesh.refs(axes) for axes in split.operands[0]])
        row = {
            "type": ir.TypeAttr.get(op.results[0].type),
            "sharding": ir.StringAttr.get(str(sharding)),
            "place": ir.StringAttr.get(str(op.location)),
        }
        if CONFIG in op.attributes:
            row["config"] = op.attributes[CONFIG]
        module.attributes[INSPECTED] = ir.ArrayAttr.get([*known, ir.DictAttr.get(row)])
        return [op.operands[0]]


def inspected(op: Any) -> OpModel[Any] | None:
    if [value.type for value in op.operands] != [value.type for value in op.results] or len(op.operands) != 1:
        return None
    rule = leading(op, len(shape_of(op.results[0])))
    return None if rule is None else Inspected(rule)


for _target in PARTITIONED:
    define_target(_target, partitioned_callback)
define_target("InspectSharding", inspected)
