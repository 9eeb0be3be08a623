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
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ops.indexing.counted_columns import counted_dim
from shardpass.ops.indexing.dimension_numbers import IndexedDims
from shardpass.ops.local import Local
from shardpass.ops.registry import define_legacy
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at


def _sizes(op: Any) -> tuple[int, ...]:
    """The size of a slice, by dimension of the operand."""
    return ints(op.attributes["slice_sizes"])


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
    dims, sizes = IndexedDims.of_gather(op), _sizes(op)
    operand, indices = (shape_of(v) for v in op.operands)
    result = shape_of(op.results[0])
    combiner = at.adder(op.operands[0].type.element_type)
    build = RuleBuilder([len(operand), len(indices)], [len(result)])
    paired = dims.paired()
    single = {d for d, s in enumerate(sizes) if s == 1 and d not in dims.operand_batching}
    paired |= counted(op.operands[1], dims.vector_dim, dims.index_map, [*paired], operand, single)
    for source, target in dims.index_walks(len(indices), len(result)).items():
        factor = build.factor(indices[source])
        build.operand(1, source, factor)
        build.result(0, target, factor)
        if source in paired:
            build.operand(0, paired[source], factor)
    if dims.vector_dim < len(indices):
        build.operand(1, dims.vector_dim, build.factor(indices[dims.vector_dim], Kind.REPLICATED))
    targets = dims.walked(len(operand))
    for dim, (size, part) in enumerate(zip(operand, sizes, strict=True)):
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
    op, dims, sizes = local.op, IndexedDims.of_gather(local.op), _sizes(local.op)
    tile, split = local.operand_tile(0), local.operand_dims[0]
    targets = dims.walked(len(tile))
    whole = [n == s for n, s in zip(local.operand_shapes[0], sizes, strict=True)]
    parts = [t if axes and w else s for t, axes, w, s in zip(tile, split, whole, sizes, strict=True)]
    op.attributes["slice_sizes"] = i64_array(parts)
    looked_up = [c for c, d in enumerate(dims.index_map) if split[d] and not (whole[d] and d in targets)]
    if not looked_up:
        if _is_slice(local, dims):
            with local.before():
                columns, _ = _local_positions(local, dims, sizes, looked_up)
                op.operands[1] = at.joined(columns, dims.vector_dim)
        return None
    kind = retype(op.results[0].type, local.tile(0))
    nothing = at.nothing_text(kind.element_type)
    with local.before():
        columns, mask = _local_positions(local, dims, sizes, looked_up)
        op.operands[1] = at.joined(columns, dims.vector_dim)
        straddling = {d for c, d in enumerate(dims.index_map) if c in looked_up and sizes[d] > 1}
        margins = [s if d in straddling else 0 for d, s in enumerate(sizes)]
        if any(margins):
            op.operands[0] = padded(op.operands[0], margins, nothing)
    op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    op.results[0].set_type(kind)
    if mask is None:
        return [op.results[0]]
    with local.after():
        where = i64_array([d for d in range(len(kind.shape)) if d not in dims.window])
        mask = hlo.broadcast_in_dim(at.i1(kind.shape), mask, where)
        return [hlo.select(mask, op.results[0], at.splat(kind, nothing))]


def _is_slice(local: Local, dims: IndexedDims) -> bool:
    """Whether XLA sees a dynamic_slice in it: one position on each device. See ``indexing`` for why that is clamped."""
    tile = local.operand_tile(1)
    return bool(dims.index_map) and prod(n for d, n in enumerate(tile) if d != dims.vector_dim) == 1


def _local_positions(
    local: Local, dims: IndexedDims, sizes: Sequence[int], looked_up: Sequence[int]
) -> tuple[list[Any], Any]:
    """The columns of the indices for this device's tile, and where a single element lies in it (None: no such)."""
    columns, mask = at.components(local.op.operands[1], dims.vector_dim), None
    shape, tile = local.operand_shapes[0], local.operand_tile(0)
    for c, dim in enumerate(dims.index_map):
        columns[c] = at.clamped(columns[c], shape[dim] - sizes[dim])
        if c not in looked_up:
            continue
        columns[c] = at.shifted(columns[c], local.start(local.operand_dims[0][dim], tile[dim]))
        if sizes[dim] > 1:  # it may straddle tiles
            columns[c] = hlo.add(columns[c], at.splat(columns[c].type, sizes[dim]))
        elif local.rule.factors[local.rule.operands[0][dim][0]].kind is Kind.REDUCTION:
            here = at.within(columns[c], tile[dim])
            mask = here if mask is None else hlo.and_(mask, here)
    return columns, mask


def padded(value: Any, margins: Sequence[int], text: str) -> Any:
    """``value`` with ``margins[d]`` more elements, all ``text``, on both sides of dimension d."""
    scalar = at.splat(retype(value.type, ()), text)
    none = i64_array([0] * len(margins))
    return hlo.pad(value, scalar, i64_array(margins), i64_array(margins), none)


define_legacy("stablehlo.gather", "gather", gather, localize_gather)
