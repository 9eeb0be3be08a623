"""``shardpass-defer``: moves redistributions past ops that make their array smaller.

Problem. Partitioning puts a redistribution right where a value is made or used. Two neighbours make it cheaper:

1. The op after it makes the array smaller, and does the same on a tile as on the whole: ``convert`` to fewer bits;
   ``slice`` of dimensions that neither side splits. On a mesh ``x=2``, with a value split by rows that is to be whole:

       whole = all_gather(f32 tile)  ->  tile' = convert(tile) to bf16
       y = convert(whole) to bf16        y = all_gather(tile'), of half the bytes

2. The op before it is an ``all_reduce`` over devices among which it splits the sum, and nothing else uses
   that sum: each device needs a part of it alone. ``slice_of(all_reduce(x))`` is ``reduce_scatter(x)``, of half the
   bytes. Axes of the all_reduce along which nothing is split are still summed over, and a change of sharding that is
   left is still a redistribution.

State: the redistributions in the order of the module, each looked at again after each op that it moved past.
Invariants: a redistribution passes an op only where it is that op's one operand and that op is its one user, in one
block; the bytes that it moves fall with each step, so the steps end.

Cost: one walk to find the redistributions; then, for each, the ops that it passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.element_types import element_type
from shardpass.ir.annotations import (
    CAUSE,
    FROM,
    GLOBAL_TYPE,
    REDISTRIBUTE,
    TO,
    custom_call_target,
    get_text,
    main_of,
    mesh_of,
)
from shardpass.ir.reductions import all_reduce, channels, reduce_scatter
from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ir.walk import named, operation, read_blocks
from shardpass.ops.model import explain
from shardpass.ops.reducers import combiner_of
from shardpass.ops.splits.assign import scatter_dims
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Sharding, parse_sharding


@register
@dataclass(frozen=True)
class Defer(ModulePass):
    """Moves ``custom_call @shardpass.redistribute`` past its only user if that sends fewer bytes.

    The user may be a ``convert`` to a narrower type, or a ``slice`` of dimensions that are whole before and after the
    redistribution. An array that the user wants replicated and then in bf16 is therefore gathered as bf16.

    An ``all_reduce`` whose only use is a redistribution that splits over the same devices becomes a ``reduce_scatter``,
    which sends half of the bytes. Over any other devices the array is still summed by an ``all_reduce``, or still
    redistributed.

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<4x8xf32>) -> tensor<8x8xbf16> {
            %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
            %1 = stablehlo.convert %0 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
            return %1 : tensor<8x8xbf16>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<4x8xf32>) -> tensor<8x8xbf16> {
            %0 = stablehlo.convert %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
            %1 = stablehlo.custom_call @shardpass.redistribute(%0) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<8x8xbf16>} : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
            return %1 : tensor<8x8xbf16>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-defer"
    summary = "redistributions wait until their array is smaller; split sums are scattered"

    def run(self, module: Any) -> bool:
        mesh = mesh_of(module)
        if mesh is None:
            return False
        calls = named(read_blocks(main_of(module)), ("stablehlo.custom_call",))
        redistributions = [op for op in calls if custom_call_target(op) == REDISTRIBUTE]
        if not redistributions:
            return False
        with ir.Location.unknown(module.context):
            work = _Work(module, prime_mesh(mesh))
            for op in redistributions:
                while work.move_behind_user(op):
                    pass
                work.scatter(op)
        return True


class _Work:
    """Move the redistributions of one module. Each redistribution that moved is tried again."""

    def __init__(self, module: Any, mesh: PrimeMesh) -> None:
        self.mesh = mesh
        self.module = module

    @cached_property
    def channels(self) -> Iterator[int]:
        """Unused channel numbers; the first access walks over the whole module."""
        return channels(self.module)

    def ends(self, op: Any) -> tuple[DimAxes, DimAxes] | None:
        """Return how ``op``'s array is split before and after; None if the mesh cannot express a split."""
        rank = _global_type(op).rank
        sides = (parse_sharding(get_text(op, name) or "") for name in (FROM, TO))
        source, target = (self.mesh.dims(s, rank) if isinstance(s, Sharding) else None for s in sides)
        return None if source is None or target is None else (source, target)

    # ---------------------------------------------------------------- past ops that make the array smaller

    def move_behind_user(self, op: Any) -> bool:
        """Move ``op`` past its only user if that sends fewer bytes; return whether it moved."""
        user = _only_user(op)
        ends = self.ends(op)
        if user is None or ends is None or operation(user.operands[0].owner) != op or not _received(op, self.mesh):
            return False
        source, target = ends
        tile, whole = op.operands[0].type, _global_type(op)
        if user.name == "stablehlo.convert":
            element = user.results[0].type.element_type
            if _bits(element) >= _bits(whole.element_type):
                return False
            made, whole = (ir.RankedTensorType.get(list(kind.shape), element) for kind in (tile, whole))
        elif user.name == "stablehlo.slice":
            sizes = shape_of(user.results[0])
            cut = [d for d, n in enumerate(shape_of(user.operands[0])) if n != sizes[d]]
            if any(source[d] or target[d] for d in cut):
                return False
            made, whole = (
                retype(k, [sizes[d] if d in cut else n for d, n in enumerate(k.shape)]) for k in (tile, whole)
            )
            limits = zip(ints(user.attributes["limit_indices"]), tile.shape, strict=True)
            user.attributes["limit_indices"] = i64_array([m if d in cut else n for d, (m, n) in enumerate(limits)])
            # of a dimension of one element a slice may say any stride
            steps = ints(user.attributes["strides"])
            user.attributes["strides"] = i64_array([m if d in cut else 1 for d, m in enumerate(steps)])
        else:
            return False
        wanted = user.results[0].type
        user.results[0].replace_all_uses_with(op.results[0])
        user.operands[0] = op.operands[0]
        user.results[0].set_type(made)
        op.move_after(user)
        op.operands[0] = user.results[0]
        op.results[0].set_type(wanted)
        op.attributes[GLOBAL_TYPE] = ir.TypeAttr.get(whole)
        return True

    # ---------------------------------------------------------------- sums

    def scatter(self, op: Any) -> None:
        """Replace the all_reduce before ``op`` by a reduce_scatter, if ``op`` splits the result of the all_reduce."""
        owner = op.operands[0].owner
        ends = self.ends(op)
        if isinstance(owner, ir.Block) or ends is None or _only_user(owner) is None:
            return
        total = operation(owner)
        combiner = combiner_of(total) if total.name == "stablehlo.all_reduce" and len(total.operands) == 1 else ""
        over = self._axes(total) if combiner else None
        if not over:
            return
        source, target = ends
        steps = scatter_dims(tuple(_global_type(op).shape), target, source, over, self.mesh)
        if not steps:
            return
        value, dims, left = total.operands[0], list(source), list(over)
        cause = get_text(total, CAUSE) or ""
        with ir.InsertionPoint(total), total.location:
            for dim, axes in steps:
                step = reduce_scatter(value, dim, self.mesh.groups(axes), combiner, next(self.channels))
                explain(step, self.mesh, axes, cause)
                value, dims[dim] = step.results[0], dims[dim] + axes
                left = [a for a in left if a not in axes]
            if left:
                step = all_reduce(value, self.mesh.groups(tuple(left)), combiner, next(self.channels))
                explain(step, self.mesh, tuple(left), cause)
                value = step.results[0]
        op.operands[0] = value
        total.erase()
        if tuple(dims) == target:
            op.results[0].replace_all_uses_with(value)
            op.erase()
        else:
            op.attributes[FROM] = ir.StringAttr.get(str(self.mesh.sharding(tuple(dims))))

    def _axes(self, total: Any) -> Axes | None:
        """Return the sub-axes of an all_reduce; None if its groups are not along sub-axes."""
        groups = np.asarray(ir.DenseElementsAttr(total.attributes["replica_groups"]))
        if not groups.size or groups.min() < 0 or "use_global_device_ids" not in total.attributes:
            return None
        coordinates = self.mesh.coordinates[groups[0]]
        axes = tuple(a for a in range(coordinates.shape[1]) if np.ptp(coordinates[:, a]))
        same = {frozenset(row) for row in self.mesh.groups(axes).tolist()} == {
            frozenset(row) for row in groups.tolist()
        }
        return axes if same else None


def _only_user(op: Any) -> Any:
    """Return the only user of ``op``'s result; None for several uses, or for a user in another block."""
    uses = list(op.results[0].uses)
    if len(uses) != 1:
        return None
    user = operation(uses[0].owner)
    return user if user.parent == op.parent else None


def _global_type(op: Any) -> Any:
    return ir.RankedTensorType(ir.TypeAttr(op.attributes[GLOBAL_TYPE]).value)


def _bits(element: Any) -> int:
    return element_type(str(element)).bits


def _received(op: Any, mesh: PrimeMesh) -> int:
    """Return bytes that a device receives for ``op``."""
    whole = _global_type(op)
    source, target = (get_text(op, name) or "" for name in (FROM, TO))
    kind = str(whole.element_type)
    return estimate_bytes(tuple(whole.shape), kind, source, target, num_devices=mesh.num_devices)
