"""``shardpass-whole-axes``: restricts shardings of arguments and results to splits that JAX supports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxlib.mlir import ir

from shardpass.ir.annotations import SHARDING
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.program import Array
from shardpass.program.table import keep, table_of
from shardpass.sharding import Sharding


@register
@dataclass(frozen=True)
class WholeAxes(ModulePass):
    """Restricts the shardings of main's arguments and results to splits that JAX arrays support.

    A JAX array is split evenly, over whole axes of a mesh. Propagation may split an argument or result without an
    annotation over part of an axis, for instance 12 rows over 4 of 8 devices. This pass keeps, for each dimension, the
    leading axes that are whole axes of ``shardpass.mesh`` and divide the dimension. The annotations of JAX users always
    have this form and do not change. Shardings that the mesh cannot express do not change either, nor do shardings
    inside of the program: partitioning inserts redistributions where these differ.

    Input:

        module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['x'=8]"} {
          func.func @main(%x: tensor<16xf32> {mhlo.sharding = "{devices=[8]<=[8]}"}) -> (tensor<12xf32> {mhlo.sharding = "{devices=[4,2]<=[8] last_tile_dim_replicate}"}) {
            %0 = stablehlo.slice %x [0:12] {mhlo.sharding = "{devices=[4,2]<=[8] last_tile_dim_replicate}"} : (tensor<16xf32>) -> tensor<12xf32>
            return %0 : tensor<12xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['x'=8]"} {
          func.func @main(%x: tensor<16xf32> {mhlo.sharding = "{devices=[8]<=[8]}"}) -> (tensor<12xf32> {mhlo.sharding = "{replicated}"}) {
            %0 = stablehlo.slice %x [0:12] {mhlo.sharding = "{devices=[4,2]<=[8] last_tile_dim_replicate}"} : (tensor<16xf32>) -> tensor<12xf32>
            return %0 : tensor<12xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-whole-axes"
    summary = "arguments and results are split only as JAX can hold them"

    keeps_table: ClassVar[bool] = True

    def run(self, module: Any) -> bool:
        table = table_of(module, "propagate")
        program, signature, shardings = table.program, table.handles.signature, table.all_shardings()
        arguments, returned = program.body.arguments, program.body.returned
        given = [shardings.of.get(value) for value in arguments]
        into = self._all(program.mesh, [program.arrays[v] for v in arguments], given, signature.arguments)
        out = self._all(program.mesh, [program.arrays[v] for v in returned], shardings.results, signature.results)
        if not into and not out:
            return False
        signature.write()
        of = {**shardings.of, **{arguments[index]: sharding for index, sharding in into.items()}}
        results = tuple(out.get(index, sharding) for index, sharding in enumerate(shardings.results))
        keep(replace(table, shardings=replace(shardings, of=of, results=results), plan=None))
        return True

    def _all(self, mesh: PrimeMesh, arrays: Any, given: Any, rows: list[dict[str, Any]]) -> dict[int, Sharding]:
        """Write the changed shardings into ``rows``; return them by position."""
        changed = {}
        for index, (array, sharding, row) in enumerate(zip(arrays, given, rows, strict=True)):
            if array is None or sharding is None:
                continue
            kept = can_hold(sharding, array, mesh)
            if kept != sharding:
                changed[index] = kept
                row[SHARDING] = ir.StringAttr.get(str(kept))
        return changed


def can_hold(sharding: Sharding, array: Array, mesh: PrimeMesh) -> Sharding:
    """Remove from ``sharding`` the axes that JAX cannot split ``array`` over.

    Example: on a mesh x=8, y=2 an array of 12 x 6 rows split over ``x:(1)4`` and ``y`` is split over ``y`` alone.
    """
    dims = mesh.dims(sharding, array.rank)
    if dims is None:
        return sharding
    kept = tuple(_even_whole(axes, size, mesh) for axes, size in zip(dims, array.shape, strict=True))
    return sharding if kept == dims else mesh.sharding(kept)


def _even_whole(axes: Axes, size: int, mesh: PrimeMesh) -> Axes:
    """Return the longest beginning of ``axes`` that is made of whole axes and divides ``size``."""
    kept: Axes = ()
    for ref in mesh.refs(axes):
        more = kept + (mesh.numbered((ref,)) or ())
        if ref.size is not None or size % mesh.count(more):
            break
        kept = more
    return kept
