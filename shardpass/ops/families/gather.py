"""gather: batch, window and index dimensions are parallel; a split indexed dimension leaves partial results.

The problem: a gather reads slices of an operand at positions given by a tensor, and only the running program knows
which tile a position falls into. (GSPMD, section 4.5 "Static partitioning of dynamic ops", treats the first two cases;
the third is the usual look-up in an embedding whose vocabulary is split.)

Cases, for each dimension of the operand; examples on the mesh x=4:

1. A batching dimension goes with one dimension of the indices and one of the result: all three are split alike.
2. A dimension whose slices are whole (slice size = size) is a window dimension of the result: both are split alike.
   An index along it can only be 0. Rows of ``f32[8,16]`` with 16 over x: a device reads ``[.., 4]`` of each row.
3. An indexed dimension, split: each device reads the positions that lie in its tile and has ``nothing`` for all others;
   a sum over the devices joins the parts. Rows [5, 0] of ``f32[8,16]`` with 8 over x: device 2 has rows 4 and 5,
   reads at [1, -4], keeps the first row, and has ``nothing`` for the second, which device 0 adds.
   A slice of one element is read in place, under a mask. A longer slice may straddle two tiles, so each tile first gets
   a margin of ``nothing`` as wide as the slice.
4. An indexed dimension whose column of the indices counts 0, 1, 2, ... (``indexing.counted_columns``) goes with the
   dimension of the indices that is counted, as a batching dimension does. Positions are shifted into the tile, and are
   always inside.
5. A dimension that is cut short and not indexed: only [0, slice size) is ever read; it is needed whole.

Invariant: positions are clamped to the whole operand before they are shifted, so the padding of uneven tiles is never
read. Nothing is sent here: the partitioner completes the partial sums. O(positions) work beside the gather itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, ints, shape_of
from shardpass.ops.indexing.counted_columns import counted_dims
from shardpass.ops.indexing.dimension_numbers import IndexedDims
from shardpass.ops.indexing.local_columns import LocalColumn
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.margins import with_margins


@dataclass(frozen=True)
class GatherPlan(LocalPlan):
    """The plan of a gather. ``columns`` is () where indices stay unchanged; ``masked``: columns of case 3."""

    slice_sizes: Shape = ()
    columns: tuple[LocalColumn, ...] = ()
    masked: frozenset[int] = frozenset()
    margins: Shape = ()


@dataclass(frozen=True, eq=False)
class Gather(OpModel[GatherPlan]):
    """A gather. ``sizes``: of a slice; ``whole``: the operand dimensions of case 2."""

    rule: Rule
    dims: IndexedDims
    sizes: Shape
    whole: frozenset[int]

    def plan(self, split: Split) -> GatherPlan:
        shape, tile, axes = split.operand_shapes[0], split.operand_tile(0), split.operands[0]
        sizes = tuple(t if a and n == s else s for t, a, n, s in zip(tile, axes, shape, self.sizes, strict=True))
        looked_up = {d for d in self.dims.index_map if axes[d] and d not in self.whole}
        if not looked_up and not self._is_slice(split):
            return GatherPlan(split, slice_sizes=sizes)
        columns = tuple(self._column(d, split, d in looked_up) for d in self.dims.index_map)
        masked = frozenset(c for c, d in enumerate(self.dims.index_map) if d in looked_up and self._needs_mask(d))
        margins = tuple(s if d in looked_up and s > 1 else 0 for d, s in enumerate(self.sizes))
        return GatherPlan(split, slice_sizes=sizes, columns=columns, masked=masked, margins=margins)

    def _is_slice(self, split: Split) -> bool:
        """Return whether the gather has one position: XLA rewrites such a gather as a dynamic_slice.

        The family ``dynamic_slice`` describes how positions are clamped then.
        """
        tile = split.operand_tile(1)
        return bool(self.dims.index_map) and prod(n for d, n in enumerate(tile) if d != self.dims.vector_dim) == 1

    def _column(self, dim: int, split: Split, looked_up: bool) -> LocalColumn:
        size = self.sizes[dim]
        last = split.operand_shapes[0][dim] - size
        if not looked_up:
            return LocalColumn(last)
        return LocalColumn(last, split.operands[0][dim], split.operand_tile(0)[dim], size if size > 1 else 0)

    def _needs_mask(self, dim: int) -> bool:
        joined = self.rule.factors[self.rule.operands[0][dim][0]].kind is Kind.REDUCTION
        return joined and self.sizes[dim] == 1

    def emit(self, plan: GatherPlan, site: Site) -> Sequence[Any]:
        op = site.op
        op.attributes["slice_sizes"] = i64_array(plan.slice_sizes)
        if not plan.columns:
            return site.keep()
        nothing = at.nothing_text(op.results[0].type.element_type)
        with site.before():
            columns, mask = self._positions(plan, site)
            op.operands[1] = at.joined(columns, self.dims.vector_dim)
            if any(plan.margins):
                op.operands[0] = with_margins(op.operands[0], plan.margins, nothing)
        if any(column.axes for column in plan.columns):
            op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
        (result,) = site.keep()
        if mask is None:
            return [result]
        with site.after():
            shape = shape_of(result)
            where = i64_array([d for d in range(len(shape)) if d not in self.dims.window])
            mask = hlo.broadcast_in_dim(at.i1(shape), mask, where)
            return [hlo.select(mask, result, at.splat(result.type, nothing))]

    def _positions(self, plan: GatherPlan, site: Site) -> tuple[list[Any], Any]:
        """Build the index columns for this device's tile, and a mask of positions inside (None: all are)."""
        columns, mask = at.components(site.op.operands[1], self.dims.vector_dim), None
        kind = at.numbers(max(column.bound(plan.split) for column in plan.columns))
        for c, column in enumerate(plan.columns):
            columns[c] = column.in_tile(at.clamped(columns[c], column.last, kind), site)
            if c in plan.masked:
                here = at.within(columns[c], column.tile)
                mask = here if mask is None else hlo.and_(mask, here)
        return columns, mask


def gather(op: Any) -> OpModel[Any]:
    dims, sizes = IndexedDims.of_gather(op), ints(op.attributes["slice_sizes"])
    operand, indices = (shape_of(v) for v in op.operands)
    single = {d for d, s in enumerate(sizes) if s == 1 and d not in dims.operand_batching}
    counted = counted_dims(op.operands[1], dims, operand, single)
    combiner = at.adder(op.operands[0].type.element_type)
    return _model(dims, sizes, operand, indices, shape_of(op.results[0]), combiner, tuple(counted.items()))


@lru_cache(maxsize=4096)
def _model(
    dims: IndexedDims,
    sizes: Shape,
    operand: Shape,
    indices: Shape,
    result: Shape,
    combiner: str,
    counted: tuple[tuple[int, int], ...],
) -> Gather:
    """Build the model. ``counted``: the pairs of case 4, (dimension of the indices, dimension of the operand)."""
    build = RuleBuilder([len(operand), len(indices)], [len(result)])
    paired = dims.paired() | dict(counted)
    for source, target in dims.index_walks(len(indices), len(result)).items():
        factor = build.mapped(indices[source], (1, source), (0, target))
        if source in paired:
            build.operand(0, paired[source], factor)
    if dims.vector_dim < len(indices):
        build.operand(1, dims.vector_dim, build.factor(indices[dims.vector_dim], Kind.REPLICATED))
    walked = dims.walked(len(operand))
    whole = frozenset(d for d in walked if operand[d] == sizes[d])
    for dim, (size, part) in enumerate(zip(operand, sizes, strict=True)):
        if dim in whole and dim not in paired.values():
            build.mapped(size, (0, dim), (0, walked[dim]))
            continue
        if dim not in paired.values():
            joins = dim in dims.index_map and bool(combiner)
            build.operand(0, dim, build.factor(size, Kind.REDUCTION if joins else Kind.REPLICATED))
        if dim in walked:
            build.result(0, walked[dim], build.factor(part, Kind.REPLICATED))
    return Gather(build.build(Priority.CONTRACTION, combiner, masks=True, in_part=True), dims, sizes, whole)


define(
    "stablehlo.gather",
    gather,
    note="batch and offset dimensions, dimensions of the indices, and indexed dimensions (partial sums)",
    context_free=False,  # it follows the indices back to an iota
)
