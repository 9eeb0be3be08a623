"""dynamic_slice and dynamic_update_slice: unsliced dimensions are parallel; sliced ones may be split too.

Problem: the position of a slice is known only at run time. The slice may lie in one tile, straddle several tiles, or
miss a tile. (GSPMD, section 4.5, keeps the dimension whole; here it stays split.)

State, along a split dimension that is sliced: the whole array has N elements, the slice has s of them starting at
``position`` (clamped to [0, N - s], as both ops do), and a tile has t of them starting at ``start``. A device stores at
most w = min(s, t) elements of the slice. It works on w elements of its tile, starting at ``at`` = clamp(position -
start, 0, t - w). Element j of these is element ``shift`` + j of the slice, where ``shift`` = at - (position - start);
it belongs to the slice if 0 <= shift + j < s.

Example: N = 8 over x=4 (t = 2), a slice of s = 3 from position 3, so elements 3, 4 and 5, and w = 2:

    device   start   position - start   at   shift   belongs to the slice
    0        0        3                 0    -3      nothing
    1        2        1                 0    -1      element 1 of the tile, as element 0 of the slice
    2        4       -1                 0     1      both elements, as 1 and 2
    3        6       -3                 0     3      nothing

Cases:

1. dynamic_slice: each device puts its part into a slice full of ``nothing``; a sum over devices joins the parts.
2. dynamic_update_slice: each device overwrites its part of the slice, and leaves the other elements of the tile as
   they are. Only w elements of the tile are touched, so a cache is updated in place.
3. No dimension is both split and sliced: the op itself, on tiles. Positions that are not constants are still clamped
   explicitly. XLA folds a dynamic_slice of a dynamic_slice into one slice at the sum of the positions, and drops the
   clamping of the first; the slice that extracts a device's tile is such a second slice.

Invariant: positions are clamped to the whole array, so the slice never contains padding. Nothing is sent here: the
partitioner completes the partial sums of case 1. O(s) work and memory beside the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.families.static_windows import updated_slice
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.margins import with_margins, without_margins


@dataclass(frozen=True, slots=True)
class Cut:
    """One dimension of a dynamic slice on a device.

    Attributes:
        last: the last valid start position.
        slice: the number of elements of the slice.
        width: the greatest number of the slice's elements in one tile.
        axes: the axes that split the dimension; () unless the dimension is both split and cut.
        tile: the number of elements of a tile.
    """

    last: int  # N - s
    slice: int  # s; of a dimension that is not cut, its tile
    width: int  # w
    axes: Axes = ()
    tile: int = 0  # t

    @property
    def margin(self) -> int:
        """Return the elements added on both sides of the slice, for parts that begin before it or end after it."""
        return self.width if self.axes else 0

    def bound(self, split: Split) -> int:
        """Bound the distance from 0 of every position and shift along the dimension."""
        tiles = split.mesh.count(self.axes) * self.tile
        return max(self.last, tiles, self.slice + 2 * self.width) if self.axes else self.last


@dataclass(frozen=True)
class DynamicSlicePlan(LocalPlan):
    cuts: tuple[Cut, ...] = ()

    @property
    def crosses_tiles(self) -> bool:
        """Whether a dimension is both split and cut."""
        return any(cut.axes for cut in self.cuts)

    @property
    def single(self) -> bool:
        """Whether the slice has one element along every cut dimension, so that it lies in one tile."""
        return all(cut.slice == 1 for cut in self.cuts if cut.axes)

    @property
    def widths(self) -> Shape:
        return tuple(cut.width for cut in self.cuts)

    @property
    def margins(self) -> Shape:
        return tuple(cut.margin for cut in self.cuts)


def _plan(split: Split, sizes: Shape) -> DynamicSlicePlan:
    """Plan the slice under ``split``. ``sizes``: of the whole slice."""
    cuts = []
    for n, s, t, axes in zip(split.operand_shapes[0], sizes, split.operand_tile(0), split.operands[0], strict=True):
        if n == s:
            cuts.append(Cut(0, t, t))
        else:
            cuts.append(Cut(n - s, s, min(s, t), axes, t))
    return DynamicSlicePlan(split, cuts=tuple(cuts))


class _Window:
    """Builds the window of the tile that can contain a part of the slice, at the current insertion point."""

    def __init__(self, plan: DynamicSlicePlan, positions: Sequence[Any], site: Site) -> None:
        self.plan = plan
        self.kind = at.numbers(max(cut.bound(site.split) for cut in plan.cuts))  # of all scalars here
        self.at: list[Any] = []
        self.shift: list[Any | None] = []  # in [-w, s]; None where the dimension is not both split and cut
        for cut, position in zip(plan.cuts, positions, strict=True):
            start, shift = at.clamped(position, cut.last, self.kind), None
            if cut.axes:
                wanted = at.shifted(start, site.start(cut.axes, cut.tile, self.kind))
                start = at.limited(wanted, 0, cut.tile - cut.width)
                shift = at.limited(hlo.subtract(start, wanted), -cut.width, cut.slice)
            self.at.append(start)
            self.shift.append(shift)

    def here(self) -> Any:
        """Build an i1: whether a ``single`` slice is on this device."""
        shifts = [shift for shift in self.shift if shift is not None]
        return at.every(at.compare("EQ", shift, at.splat(self.kind, 0)) for shift in shifts)

    def offsets(self) -> list[Any]:
        """Build the offsets of the part in the slice with ``margins`` on both sides."""
        zero = at.splat(self.kind, 0)
        return [
            zero if shift is None else hlo.add(shift, at.splat(self.kind, cut.width))
            for cut, shift in zip(self.plan.cuts, self.shift, strict=True)
        ]

    def overlap(self) -> Any:
        """Build an i1 of the window's shape: which of its elements belong to the slice."""
        widths = self.plan.widths
        kind = retype(self.kind, widths)
        return at.every(
            at.within(hlo.add(hlo.iota(kind, dim), at.spread(shift, widths)), cut.slice)
            for dim, (cut, shift) in enumerate(zip(self.plan.cuts, self.shift, strict=True))
            if shift is not None
        )


@dataclass(frozen=True, eq=False)
class DynamicSlice(OpModel[DynamicSlicePlan]):
    rule: Rule

    def plan(self, split: Split) -> DynamicSlicePlan:
        return _plan(split, split.result_shapes[0])

    def emit(self, plan: DynamicSlicePlan, site: Site) -> Sequence[Any]:
        op = site.op
        if not plan.crosses_tiles:
            op.attributes["slice_sizes"] = i64_array(site.split.result_tile(0))
            with site.before():
                _clamp(op, plan)
            return site.keep()
        kind = site.tile_type(0)
        nothing = at.nothing_text(kind.element_type)
        with site.before():
            window = _Window(plan, list(op.operands)[1:], site)
            for dim, position in enumerate(window.at):
                op.operands[1 + dim] = position
        op.attributes["slice_sizes"] = i64_array(plan.widths)
        op.results[0].set_type(retype(kind, plan.widths))
        with site.after():
            if plan.single:
                return [hlo.select(window.here(), op.results[0], at.splat(kind, nothing))]
            room = [s + 2 * m for s, m in zip(kind.shape, plan.margins, strict=True)]
            empty = at.splat(retype(kind, room), nothing)
            placed = hlo.dynamic_update_slice(empty, op.results[0], window.offsets())
            return [without_margins(placed, plan.margins)]


def _clamp(op: Any, plan: DynamicSlicePlan) -> None:
    """Clamp the positions to the whole array, unless all are constants."""
    positions = list(op.operands)[1:]
    if all(_is_constant(position) for position in positions):
        return
    kind = at.numbers(max(cut.last for cut in plan.cuts))
    for dim, (position, cut) in enumerate(zip(positions, plan.cuts, strict=True)):
        op.operands[1 + dim] = at.clamped(position, cut.last, kind)


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "stablehlo.constant"


@dataclass(frozen=True, eq=False)
class DynamicUpdateSlice(OpModel[DynamicSlicePlan]):
    rule: Rule

    def plan(self, split: Split) -> DynamicSlicePlan:
        return _plan(split, split.operand_shapes[1])

    def emit(self, plan: DynamicSlicePlan, site: Site) -> Sequence[Any]:
        if plan.crosses_tiles:
            with site.before():
                self._overwrite_part(plan, site)
        return site.keep()

    def _overwrite_part(self, plan: DynamicSlicePlan, site: Site) -> None:
        op = site.op
        window = _Window(plan, list(op.operands)[2:], site)
        tile, update = op.operands[0], op.operands[1]
        old = hlo.dynamic_slice(tile, window.at, i64_array(plan.widths))
        if plan.single:
            mask = window.here()
        else:
            nothing = at.nothing_text(update.type.element_type)
            room = with_margins(update, plan.margins, nothing)
            update = hlo.dynamic_slice(room, window.offsets(), i64_array(plan.widths))
            mask = window.overlap()
        op.operands[1] = hlo.select(mask, update, old)
        for dim, position in enumerate(window.at):
            op.operands[2 + dim] = position


def dynamic_slice(op: Any) -> OpModel[Any]:
    combiner = at.adder(op.operands[0].type.element_type)
    return _slice_model(shape_of(op.operands[0]), shape_of(op.results[0]), combiner)


@lru_cache(maxsize=4096)
def _slice_model(source: Shape, target: Shape, combiner: str) -> DynamicSlice:
    """Build the model. A slice as long as its dimension starts at 0 for every value of its position operand."""
    build = RuleBuilder([len(source), *([0] * len(source))], [len(target)])
    for dim, (size, part) in enumerate(zip(source, target, strict=True)):
        if size == part:
            build.mapped(size, (0, dim), (0, dim))
            continue
        joins = bool(combiner) and part > 0
        build.operand(0, dim, build.factor(size, Kind.REDUCTION if joins else Kind.REPLICATED))
        build.result(0, dim, build.factor(part, Kind.REPLICATED))
    return DynamicSlice(build.build(Priority.CONTRACTION, combiner, masks=True, in_part=True))


def dynamic_update_slice(op: Any) -> OpModel[Any]:
    return _update_model(shape_of(op.operands[0]), shape_of(op.operands[1]))


@lru_cache(maxsize=4096)
def _update_model(target: Shape, update: Shape) -> DynamicUpdateSlice:
    build = RuleBuilder([len(target), len(update), *([0] * len(target))], [len(target)])
    for dim, (size, part) in enumerate(zip(target, update, strict=True)):
        free = size == part or part > 0
        factor = build.mapped(size, (0, dim), (0, dim), Kind.PARALLEL if free else Kind.REPLICATED)
        build.operand(1, dim, factor if size == part else build.factor(part, Kind.REPLICATED))
    return DynamicUpdateSlice(build.build(in_part=True))


define(
    "stablehlo.dynamic_slice",
    dynamic_slice,
    note="every dimension; along a sliced dimension, each device contributes the elements of the slice that it holds "
    "(partial sums)",
)
define(
    "stablehlo.dynamic_update_slice",
    dynamic_update_slice,
    expand=updated_slice,
    note="every dimension; along an updated dimension, each device writes the elements of the update that fall into "
    "its tile",
)
