"""Build the steps of a plan as ops: reshards, recomputed values, masks, completions of partial results.

Each builder works at the current insertion point and location, and follows its step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir import annotations as names
from shardpass.ir.offsets import device_value
from shardpass.ir.reductions import all_reduce, reduce_scatter
from shardpass.ir.tensors import retype
from shardpass.ops.model import explain
from shardpass.ops.splits.assign import Completion
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import mask
from shardpass.planning.price.prices import stack_manual_axes
from shardpass.planning.price.steps import Alone, Mask, Reshard
from shardpass.sharding import Sharding


def tile_shape(shape: tuple[int, ...], sharding: Sharding) -> tuple[int, ...]:
    """Return the shape of a tile; a maximal sharding has the whole array's shape on every device."""
    return shape if sharding.is_maximal else sharding.tile_shape(shape)


class ReshardBuilder:
    """Builds ``custom_call @shardpass.redistribute``. Equal attributes are created once."""

    def __init__(self) -> None:
        self._attributes: dict[Any, tuple[Any, dict[str, Any]]] = {}

    def build(self, step: Reshard, tile: Any) -> Any:
        """Build the redistribution of ``tile`` from the source sharding to the target sharding; returns its result.

        In a region that is manual over some axes both are stacked along a first dimension (``planning.prices``).
        """
        shape, mesh = step.type.shape, step.mesh
        source, target = step.source.sharding, step.target
        element = tile.type.element_type
        key = (step.type, source, target, mesh.manual, step.cause)
        known = self._attributes.get(key)
        if known is None:
            made = tile_shape(shape, target)
            if mesh.manual:
                whole, source, target = stack_manual_axes(shape, source, target, mesh)
                made = (1, *made)
            else:
                whole = shape
            attributes = {
                names.FROM: ir.StringAttr.get(str(source)),
                names.TO: ir.StringAttr.get(str(target)),
                names.GLOBAL_TYPE: ir.TypeAttr.get(ir.RankedTensorType.get(list(whole), element)),
                names.CAUSE: ir.StringAttr.get(step.cause),
            }
            known = self._attributes[key] = (ir.RankedTensorType.get(list(made), element), attributes)
        result, attributes = known
        if not mesh.manual:
            return names.make_custom_call(names.REDISTRIBUTE, tile, result, attributes)
        stacked = hlo.reshape(retype(tile.type, (1, *tile.type.shape)), tile)
        moved = names.make_custom_call(names.REDISTRIBUTE, stacked, result, attributes)
        return hlo.reshape(retype(result, result.shape[1:]), moved)


def masked(step: Mask | Alone, tile: Any, mesh: PrimeMesh) -> Any:
    """Overwrite the padding of ``tile`` with the combiner's identity.

    For ``Alone``, overwrites the whole tile with zeros on every device but the first along the axes.
    """
    if isinstance(step, Alone):
        zeros = at.splat(tile.type, at.nothing_text(tile.type.element_type))
        first = at.compare("EQ", device_value(mesh.index(step.axes)), at.splat(at.i32(), 0))
        return hlo.select(first, tile, zeros)
    return mask(tile, step.dim, step.size, step.axes, mesh, step.combiner)


def completed(step: Completion, tile: Any, mesh: PrimeMesh, channels: Iterator[int], cause: str) -> Any:
    """Sum ``tile``, or reduce it by the step's combiner, over the devices that hold partial results."""
    groups = mesh.groups(step.axes)
    if step.dim is None:
        op = all_reduce(tile, groups, step.combiner, next(channels))
    else:
        op = reduce_scatter(tile, step.dim, groups, step.combiner, next(channels))
    explain(op, mesh, step.axes, cause)
    return op.results[0]
