"""scatter: window, batch and indexed dimensions are parallel; a split of the updates leaves partial results.

The problem: a scatter writes updates into an operand at positions given by a tensor, and only the running program
knows which tile a position falls into. A plain scatter of sums is what the gradient of an embedding is.

Cases, for each dimension of the operand (the result is split as the operand is); examples on the mesh x=4:

1. A batching dimension goes with one dimension of the indices and one of the updates: all three are split alike.
2. A dimension that is written whole (window size = size) is a window dimension of the updates: both are split alike.
   Only an index of 0 is in bounds along it.
3. An indexed dimension, or an inserted one, is absent from the updates. Each device shifts the positions into its tile,
   and what falls outside is dropped, as scatter drops what is out of bounds: of the positions [5, 0] in
   ``f32[8]`` over x, device 2 (elements 4 and 5) writes at 1 and drops -4. A window of more than one element may
   straddle two tiles, so the tile first gets a margin, which is cut off after.
4. An indexed dimension whose column of the indices counts 0, 1, 2, ... (``indexing.counted_columns``) goes with the
   dimension of the indices that is counted, as a batching dimension does; positions are shifted as in 3.
5. A dimension that is cut short and not indexed: only [0, window size) is ever written; it is needed whole.

The other dimensions of indices and updates tell the updates apart. Where they are split, each device applies its own
updates, and the results are partial. The operand must then count once: every part but the first starts from the
combiner's identity. This works for combiners that have one. Any other body (one that overwrites) applies the updates in
their order, so a device needs all that change its tile: parts of them have no order among devices. (Where indices are
unique the order does not matter, but then the updates are no larger than the operand, and to gather them receives less
than to join two partial operands and a mask of the elements that were written.) Updates in the padding are sent out of
bounds.

A single update is a dynamic_slice and a dynamic_update_slice to XLA, which folds that slice with the one that brings a
tile to a device, at the sum of the positions, and reads elsewhere where the position is out of bounds
(see ``dynamic_slice``). A barrier between the two keeps them apart.

Invariant: a window that is not wholly inside of the operand is dropped whole, as XLA does it (JAX's modes are built on
that). The specification drops only the elements outside; with windows of one element the two agree.

Nothing is sent here: the partitioner completes partial results. O(positions) work beside the scatter itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import shape_of
from shardpass.ops.families.static_windows import scattered
from shardpass.ops.indexing.counted_columns import counted_dims
from shardpass.ops.indexing.dimension_numbers import IndexedDims
from shardpass.ops.indexing.local_columns import LocalColumn
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.reducers import partial_combiner
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.boxes import is_zero
from shardpass.ops.tiles.margins import with_margins, without_margins
from shardpass.ops.tiles.masking import identity_text, real

IDEMPOTENT = ("maximum", "minimum", "and", "or")  # x joined with x is x: an operand may count many times


@dataclass(frozen=True, slots=True)
class UnevenRows:
    """A dimension of the indices whose tiles of ``tile`` rows end in padding, beyond the array's ``rows`` rows.

    ``place``: the dimension in a column of the indices, which has no dimension for the index vector.
    """

    place: int
    rows: int
    axes: Axes
    tile: int


@dataclass(frozen=True)
class ScatterPlan(LocalPlan):
    """The plan of a scatter. ``once``: sub-axes of the updates; only devices of part 0 along these keep the operand.

    ``columns`` is () where the indices stay as they are.
    """

    once: Axes = ()
    barrier: bool = False
    columns: tuple[LocalColumn, ...] = ()
    uneven: tuple[UnevenRows, ...] = ()
    margins: Shape = ()


@dataclass(frozen=True, eq=False)
class Scatter(OpModel[ScatterPlan]):
    """A scatter into ``inputs`` operands at once. ``from_zeros``: the operand is known to be 0 everywhere."""

    rule: Rule
    dims: IndexedDims
    inputs: int
    widths: Shape  # of the window, by dimension of the operand; 1 where the updates do not have it
    from_zeros: bool

    def plan(self, split: Split) -> ScatterPlan:
        shape, axes = split.operand_shapes[0], split.operands[0]
        rows = prod(n for d, n in enumerate(split.operand_tile(self.inputs)) if d != self.dims.vector_dim)
        uneven = self._uneven_rows(split)
        shifted = bool(uneven) or any(axes[d] for d in self.dims.index_map)
        columns = tuple(self._column(d, split) for d in self.dims.index_map) if shifted else ()
        straddled = {d for d in self.dims.index_map if shifted and axes[d] and self.widths[d] < shape[d]}
        margins = tuple(self.widths[d] - 1 if d in straddled else 0 for d in range(len(shape)))
        once = () if self._may_count_twice() else partial_axes(self.rule, split.factors)
        return ScatterPlan(split, once=once, barrier=rows == 1, columns=columns, uneven=uneven, margins=margins)

    def _may_count_twice(self) -> bool:
        """Return whether combining the operand with itself leaves the operand unchanged."""
        combiner = self.rule.combiner
        return combiner in IDEMPOTENT or (combiner == "add" and self.from_zeros)

    def _column(self, dim: int, split: Split) -> LocalColumn:
        size, width = split.operand_shapes[0][dim], self.widths[dim]
        axes = split.operands[0][dim] if width < size else ()
        return LocalColumn(size - width, axes, split.operand_tile(0)[dim], width - 1)

    def _uneven_rows(self, split: Split) -> tuple[UnevenRows, ...]:
        """List the padded rows that would be applied as updates; padding of a batch writes to padding."""
        sizes, axes = split.operand_shapes[self.inputs], split.operands[self.inputs]
        tile = split.operand_tile(self.inputs)
        sources = [d for d in range(len(sizes)) if d != self.dims.vector_dim]
        return tuple(
            UnevenRows(place, sizes[d], axes[d], tile[d])
            for place, d in enumerate(sources)
            if axes[d] and d not in self.dims.indices_batching and sizes[d] % split.mesh.count(axes[d])
        )

    def emit(self, plan: ScatterPlan, site: Site) -> Sequence[Any]:
        op, inputs = site.op, range(self.inputs)
        with site.before():
            if plan.once:
                op.operands[0] = self._counted_once(plan.once, site)
            if plan.barrier:
                for index in inputs:
                    op.operands[index] = hlo.optimization_barrier([op.operands[index]])
            if not plan.columns:
                return site.keep()
            op.operands[self.inputs] = at.joined(self._positions(plan, site), self.dims.vector_dim)
            op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
            if not any(plan.margins):
                return site.keep()
            for index in inputs:
                nothing = at.nothing_text(op.operands[index].type.element_type)
                op.operands[index] = with_margins(op.operands[index], plan.margins, nothing)
                op.results[index].set_type(op.operands[index].type)
        with site.after():
            return [without_margins(result, plan.margins) for result in op.results]

    def _counted_once(self, parts: Axes, site: Site) -> Any:
        """Keep the operand on devices with part 0 of the updates; all others start from the combiner's identity."""
        value, combiner = site.op.operands[0], self.rule.combiner
        element = value.type.element_type
        text = at.nothing_text(element) if combiner == "add" else identity_text(combiner, element)
        part = device_value(site.split.mesh.index(parts))
        first = hlo.compare(part, at.splat(at.i32(), 0), hlo.ComparisonDirectionAttr.get("EQ"))
        return hlo.select(first, value, at.splat(value.type, str(text)))

    def _positions(self, plan: ScatterPlan, site: Site) -> list[Any]:
        """Build the index columns for this device's tile, out of bounds for updates that are not applied."""
        columns = at.components(site.op.operands[self.inputs], self.dims.vector_dim)
        rows = _real_rows(plan.uneven, shape_of(columns[0]), plan.split.mesh) if plan.uneven else None
        kind = at.numbers(max(2 * max(self.widths), *(column.bound(plan.split) for column in plan.columns)))
        nowhere = -(2 ** (kind.element_type.width - 2))  # no window that is as long as any of these reaches the tile
        for c, column in enumerate(plan.columns):
            kept = at.in_range(columns[c], column.last)
            valid = at.compare("EQ", kept, columns[c])
            if rows is not None:
                valid = hlo.and_(valid, rows)
            position = column.in_tile(at.converted(kept, kind), site)
            columns[c] = hlo.select(valid, position, at.splat(position.type, nowhere))
        return columns


def _real_rows(uneven: Sequence[UnevenRows], shape: Shape, mesh: PrimeMesh) -> Any:
    """Build an i1 of ``shape``: whether a row of the indices belongs to the whole array rather than to padding."""
    return at.every(real(shape, rows.place, rows.rows, rows.axes, mesh) for rows in uneven)


def scatter(op: Any) -> OpModel[Any]:
    dims, inputs = IndexedDims.of_scatter(op), len(op.results)
    shapes = tuple(shape_of(v) for v in op.operands)
    counted = counted_dims(op.operands[inputs], dims, shapes[0], set(dims.dropped))
    combiner = partial_combiner(op) if dims.index_map else ""
    return _model(dims, inputs, shapes, combiner, tuple(counted.items()), is_zero(op.operands[0]))


@lru_cache(maxsize=4096)
def _model(
    dims: IndexedDims,
    inputs: int,
    shapes: tuple[Shape, ...],
    combiner: str,
    counted: tuple[tuple[int, int], ...],
    from_zeros: bool,
) -> Scatter:
    """Build the model. ``shapes``: of all operands; ``counted``: the pairs of case 4."""
    operand, updates = shapes[0], shapes[inputs + 1]
    walked = dims.walked(len(operand))
    widths = tuple(updates[walked[d]] if d in walked else 1 for d in range(len(operand)))
    rule = _ScatterRule(dims, inputs, shapes, dims.paired() | dict(counted), combiner)
    return Scatter(rule.build(widths), dims, inputs, widths, from_zeros)


class _ScatterRule:
    """Builds the rule. ``paired``: dimension of the indices -> the operand dimension of case 1 or 4."""

    def __init__(
        self, dims: IndexedDims, inputs: int, shapes: tuple[Shape, ...], paired: dict[int, int], combiner: str
    ) -> None:
        self.dims, self.inputs, self.paired, self.combiner = dims, inputs, paired, combiner
        self.operand, self.indices, self.updates = shapes[0], shapes[inputs], shapes[inputs + 1]
        self.builder = RuleBuilder([len(s) for s in shapes], [len(self.operand)] * inputs)

    def build(self, widths: Shape) -> Rule:
        self._rows()
        self._windows(widths)
        return self.builder.build(Priority.CONTRACTION, self.combiner, masks=True, in_part=True)

    def _rows(self) -> None:
        """Add factors for the dimensions that enumerate updates: parallel if paired, else a reduction."""
        build, vector_dim = self.builder, self.dims.vector_dim
        apart = Kind.REDUCTION if self.combiner else Kind.REPLICATED
        for source, target in self.dims.index_walks(len(self.indices), len(self.updates)).items():
            factor = build.factor(self.indices[source], Kind.PARALLEL if source in self.paired else apart)
            build.operand(self.inputs, source, factor)
            self._updates(target, factor)
            if source in self.paired:
                build.along(self.paired[source], factor, self.inputs, self.inputs)
        if vector_dim < len(self.indices):
            build.operand(self.inputs, vector_dim, build.factor(self.indices[vector_dim], Kind.REPLICATED))

    def _windows(self, widths: Shape) -> None:
        build, walked = self.builder, self.dims.walked(len(self.operand))
        for dim, (size, width) in enumerate(zip(self.operand, widths, strict=True)):
            if dim in self.paired.values():
                continue
            whole = dim in walked and width == size
            free = whole or dim in self.dims.index_map
            factor = build.factor(size, Kind.PARALLEL if free else Kind.REPLICATED)
            build.along(dim, factor, self.inputs, self.inputs)
            if dim in walked:
                self._updates(walked[dim], factor if whole else build.factor(width, Kind.REPLICATED))

    def _updates(self, dim: int, factor: int) -> None:
        for index in range(self.inputs):
            self.builder.operand(self.inputs + 1 + index, dim, factor)


define(
    "stablehlo.scatter",
    scatter,
    note="batch and window dimensions; scattered dimensions, with each device applying the updates that fall into its "
    "tile; dimensions of the updates if the body is add, multiply, minimum or maximum (partial results); with any "
    "other body, such as one that overwrites, every device needs all updates in their order",
    expand=scattered,
    context_free=False,  # it follows the indices back to an iota, and the operand to a constant
)
