"""gather: batch, pass-through and index dimensions are parallel; the indexed dimension leaves partial results.

Cases, for each dimension of the operand:

1. a batching dimension: the one of the indices and of the result that goes with it;
2. taken whole (slice size = size): a window dimension of the result; an index along it can only be 0;
3. indexed: each device looks for the positions that lie in its tile, holds ``nothing`` where there are none, and a sum
   over devices joins the parts (an embedding over a split vocabulary). A slice of one element is looked up
   in place, under a mask; a longer one may straddle tiles, so the tile is padded with ``nothing`` first;
4. indexed by a column that merely counts (``counting``): it goes with the dimension of the indices that is counted, as
   a batching dimension does. Positions are shifted into the tile, and are always there;
5. cut short without being indexed: only [0, slice size) is ever read; needed whole.

Positions are clamped to the whole operand before they are shifted, so the padding of uneven tiles is never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ops import positions as at
from shardpass.ops.counting import counted_dim
from shardpass.ops.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.local import Local
from shardpass.ops.registry import define


@dataclass(frozen=True, slots=True)
class GatherDims:
    """The dimension numbers of a gather (StableHLO specification, gather), and what follows from them."""

    offset: tuple[int, ...]  # result dimensions that walk the slice
    collapsed: tuple[int, ...]
    operand_batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    index_map: tuple[int, ...]  # component of the index vector -> operand dimension
    vector_dim: int
    slice_sizes: tuple[int, ...]

    @classmethod
    def of(cls, op: Any) -> GatherDims:
        said = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
        return cls(
            ints(said.offset_dims),
            ints(said.collapsed_slice_dims),
            ints(said.operand_batching_dims),
            ints(said.start_indices_batching_dims),
            ints(said.start_index_map),
            int(said.index_vector_dim),
            ints(op.attributes["slice_sizes"]),
        )

    def window(self) -> list[int]:
        """Operand dimensions that ``offset`` walks, in its order."""
        gone = {*self.collapsed, *self.operand_batching}
        return [d for d in range(len(self.slice_sizes)) if d not in gone]

    def single(self) -> set[int]:
        """Operand dimensions of which one element is taken."""
        return {d for d, s in enumerate(self.slice_sizes) if s == 1 and d not in self.operand_batching}

    def batch(self, result_rank: int) -> list[int]:
        """Result dimensions that walk the indices, in the order of the indices' dimensions."""
        return [d for d in range(result_rank) if d not in self.offset]

    def index_dims(self, indices_rank: int) -> list[int]:
        """Dimensions of the indices without the index vector's."""
        return [d for d in range(indices_rank) if d != self.vector_dim]


def counted(
    indices: Any,
    vector_dim: int,
    index_map: Sequence[int],
    taken: Sequence[int],
    operand: Sequence[int],
    single: set[int],
) -> dict[int, int]:
    """Dimension of the indices -> operand dimension whose column counts along it, all of it.

    ``taken``: dimensions of the indices that go with others already; ``single``: operand dimensions that may be paired.
    """
    out: dict[int, int] = {}
    shape = shape_of(indices)
    for column, dim in enumerate(index_map):
        if dim not in single or operand[dim] == 1:
            continue
        source = counted_dim(indices, vector_dim, column)
        if source is not None and source not in taken and source not in out and shape[source] == operand[dim]:
            out[source] = dim
    return out


def gather(op: Any) -> Rule | None:
    dims = GatherDims.of(op)
    operand, indices = (shape_of(v) for v in op.operands)
    result = shape_of(op.results[0])
    combiner = at.adder(op.operands[0].type.element_type)
    build = RuleBuilder([len(operand), len(indices)], [len(result)])
    walks = dict(zip(dims.index_dims(len(indices)), dims.batch(len(result)), strict=True))
    paired = dict(zip(dims.indices_batching, dims.operand_batching, strict=True))
    paired |= counted(op.operands[1], dims.vector_dim, dims.index_map, [*paired], operand, dims.single())
    for source, target in walks.items():
        factor = build.factor(indices[source])
        build.operand(1, source, factor)
        build.result(0, target, factor)
        if source in paired:
            build.operand(0, paired[source], factor)
    if dims.vector_dim < len(indices):
        build.operand(1, dims.vector_dim, build.factor(indices[dims.vector_dim], Kind.REPLICATED))
    targets = dict(zip(dims.window(), dims.offset, strict=True))
    for dim, (size, part) in enumerate(zip(operand, dims.slice_sizes, strict=True)):
        if dim in paired.values():
            if dim in targets:
                build.result(0, targets[dim], build.factor(part, Kind.REPLICATED))
            continue
        if size == part and dim in targets:
            factor = build.factor(size)
            build.operand(0, dim, factor)
            build.result(0, targets[dim], factor)
            continue
        joins = dim in dims.index_map and bool(combiner) and size <= at.LARGEST
        build.operand(0, dim, build.factor(size, Kind.REDUCTION if joins else Kind.REPLICATED))
        if dim in targets:
            build.result(0, targets[dim], build.factor(part, Kind.REPLICATED))
    return build.build(Priority.CONTRACTION, combiner, masks=True)


def localize_gather(local: Local) -> list[Any] | None:
    op, dims = local.op, GatherDims.of(local.op)
    tile, split = local.operand_tile(0), local.operand_dims[0]
    targets = dict(zip(dims.window(), dims.offset, strict=True))
    sizes = [tile[d] if split[d] and _whole(local, dims, d) else s for d, s in enumerate(dims.slice_sizes)]
    op.attributes["slice_sizes"] = i64_array(sizes)
    looked_up = [c for c, d in enumerate(dims.index_map) if split[d] and not (_whole(local, dims, d) and d in targets)]
    if not looked_up:
        if _is_slice(local, dims):
            with local.before():
                columns, _ = _local_positions(local, dims, looked_up)
                op.operands[1] = at.joined(columns, dims.vector_dim)
        return None
    kind = retype(op.results[0].type, local.tile(0))
    nothing = at.nothing_text(kind.element_type)
    with local.before():
        columns, mask = _local_positions(local, dims, looked_up)
        op.operands[1] = at.joined(columns, dims.vector_dim)
        margins = [dims.slice_sizes[d] if _straddles(dims, looked_up, d) else 0 for d in range(len(tile))]
        if any(margins):
            op.operands[0] = padded(op.operands[0], margins, nothing)
    op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    op.results[0].set_type(kind)
    if mask is None:
        return [op.results[0]]
    with local.after():
        where = i64_array(dims.batch(len(kind.shape)))
        mask = hlo.broadcast_in_dim(at.i1(kind.shape), mask, where)
        return [hlo.select(mask, op.results[0], at.splat(kind, nothing))]


def _is_slice(local: Local, dims: GatherDims) -> bool:
    """Whether XLA sees a dynamic_slice in it: one position on each device. See ``indexing`` for why that is clamped."""
    tile = local.operand_tile(1)
    return bool(dims.index_map) and prod(n for d, n in enumerate(tile) if d != dims.vector_dim) == 1


def _whole(local: Local, dims: GatherDims, dim: int) -> bool:
    return local.operand_shapes[0][dim] == dims.slice_sizes[dim]


def _straddles(dims: GatherDims, looked_up: Sequence[int], dim: int) -> bool:
    return dims.slice_sizes[dim] > 1 and dim in {dims.index_map[c] for c in looked_up}


def _local_positions(local: Local, dims: GatherDims, looked_up: Sequence[int]) -> tuple[list[Any], Any]:
    """The columns of the indices for this device's tile, and where a single element lies in it (None: no such)."""
    columns, mask = at.components(local.op.operands[1], dims.vector_dim), None
    shape, tile = local.operand_shapes[0], local.operand_tile(0)
    for c, dim in enumerate(dims.index_map):
        columns[c] = at.clamped(columns[c], shape[dim] - dims.slice_sizes[dim])
        if c not in looked_up:
            continue
        columns[c] = at.shifted(columns[c], local.start(local.operand_dims[0][dim], tile[dim]))
        if _straddles(dims, looked_up, dim):
            columns[c] = hlo.add(columns[c], at.splat(columns[c].type, dims.slice_sizes[dim]))
        elif local.rule.factors[local.rule.operands[0][dim][0]].kind is Kind.REDUCTION:
            here = at.within(columns[c], tile[dim])
            mask = here if mask is None else hlo.and_(mask, here)
    return columns, mask


def padded(value: Any, margins: Sequence[int], text: str) -> Any:
    """``value`` with ``margins[d]`` more elements, all ``text``, on both sides of dimension d."""
    scalar = at.splat(retype(value.type, ()), text)
    none = i64_array([0] * len(margins))
    return hlo.pad(value, scalar, i64_array(margins), i64_array(margins), none)


define("stablehlo.gather", "gather", gather, localize_gather)
