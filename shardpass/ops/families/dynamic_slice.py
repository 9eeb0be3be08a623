"""dynamic_slice and dynamic_update_slice: a dimension taken whole is parallel; so is one that is cut, with this care.

State, along a split dimension that is cut: the whole array has N elements, the slice s of them from ``position``
(clamped to [0, N - s], as both ops do), a tile t of them from ``start``. What a device can hold of the slice is at most
w = min(s, t) elements long. It works on the w elements of its tile from ``at`` = clamp(position - start, 0, t - w):
element j of these is element ``shift`` + j of the slice, where ``shift`` = at - (position - start); those for which
0 <= shift + j < s belong to the slice. Positions are clamped to the whole array, so padding never does.

Positions that are no constants are clamped in so many words even where nothing is cut: XLA folds a dynamic_slice of a
dynamic_slice into one at the sum of the positions, and forgets that the first was to be clamped; the slice that
brings a tile to a device is such a second one.

* dynamic_slice: each device puts its part into a slice full of ``nothing``; a sum over devices joins the parts.
* dynamic_update_slice: each device overwrites its part of the slice, and leaves the tile's other elements as
  they are; nothing is communicated. Only w elements of the tile are touched, so a cache is updated in place.

O(s) work and memory beside the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.families.gather import padded
from shardpass.ops.local import Local
from shardpass.ops.registry import define_legacy
from shardpass.ops.splits.factors import DimAxes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at


def dynamic_slice(op: Any) -> Rule | None:
    """A slice as long as the dimension starts at 0 whatever the position says."""
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    combiner = at.adder(op.operands[0].type.element_type)
    build = RuleBuilder([len(source), *([0] * len(source))], [len(target)])
    for dim, (size, part) in enumerate(zip(source, target, strict=True)):
        if size == part:
            factor = build.factor(size)
            build.operand(0, dim, factor)
            build.result(0, dim, factor)
            continue
        joins = bool(combiner) and part > 0 and size <= at.LARGEST
        build.operand(0, dim, build.factor(size, Kind.REDUCTION if joins else Kind.REPLICATED))
        build.result(0, dim, build.factor(part, Kind.REPLICATED))
    return build.build(Priority.CONTRACTION, combiner, masks=True)


def dynamic_update_slice(op: Any) -> Rule | None:
    target, update = shape_of(op.operands[0]), shape_of(op.operands[1])
    build = RuleBuilder([len(target), len(update), *([0] * len(target))], [len(target)])
    for dim, (size, part) in enumerate(zip(target, update, strict=True)):
        free = size == part or (part > 0 and size <= at.LARGEST)
        factor = build.factor(size, Kind.PARALLEL if free else Kind.REPLICATED)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
        build.operand(1, dim, factor if size == part else build.factor(part, Kind.REPLICATED))
    return build.build()


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the slice that this device can hold; see the module's text. Lists go by dimension.

    ``shift`` is None for a dimension that is not both split and cut.
    """

    slice: tuple[int, ...]  # s, in tiles where the dimension is taken whole
    size: tuple[int, ...]  # w
    at: list[Any]  # tensor<i32>
    shift: list[Any | None]  # tensor<i32>, in [-w, s]

    @property
    def single(self) -> bool:
        """Whether the slice is one element long wherever it is cut: then it is here whole, or not at all."""
        return all(s == 1 for s, shift in zip(self.slice, self.shift, strict=True) if shift is not None)

    def here(self) -> Any:
        """i1: whether a ``single`` slice is on this device."""
        out = None
        for shift in self.shift:
            if shift is not None:
                hit = at.compare("EQ", shift, at.splat(at.i32(), 0))
                out = hit if out is None else hlo.and_(out, hit)
        return out

    def margins(self) -> list[int]:
        return [0 if shift is None else w for w, shift in zip(self.size, self.shift, strict=True)]

    def offsets(self) -> list[Any]:
        """Where the part lies in the slice with ``margins`` on both sides."""
        zero = at.splat(at.i32(), 0)
        return [
            zero if shift is None else hlo.add(shift, at.splat(at.i32(), w))
            for w, shift in zip(self.size, self.shift, strict=True)
        ]


def _window(local: Local, positions: Sequence[Any], sizes: Sequence[int], dims: DimAxes) -> Window:
    """``positions``: the op's start indices; ``sizes``: of the whole slice; ``dims``: the operand's split."""
    shape, tile = local.operand_shapes[0], local.operand_tile(0)
    slices, widths, starts, shifts = [], [], [], []
    for dim, (position, s) in enumerate(zip(positions, sizes, strict=True)):
        whole = shape[dim] == s
        start, shift, width = at.clamped(position, shape[dim] - s), None, tile[dim] if whole else s
        slices.append(width)
        if dims[dim] and not whole:
            width = min(s, tile[dim])
            wanted = at.shifted(start, local.start(dims[dim], tile[dim]))
            start = at.limited(wanted, 0, tile[dim] - width)
            shift = at.limited(hlo.subtract(start, wanted), -width, s)
        widths.append(width)
        starts.append(start)
        shifts.append(shift)
    return Window(tuple(slices), tuple(widths), starts, shifts)


def _cuts(local: Local, sizes: Sequence[int]) -> bool:
    """Whether a dimension is both split and cut."""
    return any(
        axes and s != n for axes, s, n in zip(local.operand_dims[0], sizes, local.operand_shapes[0], strict=True)
    )


def localize_dynamic_slice(local: Local) -> list[Any] | None:
    op, whole = local.op, local.result_shapes[0]
    if not _cuts(local, whole):
        op.attributes["slice_sizes"] = i64_array(local.tile(0))
        with local.before():
            _clamp(op, 1, local.operand_shapes[0], whole)
        return None
    kind = retype(op.results[0].type, local.tile(0))
    nothing = at.nothing_text(kind.element_type)
    with local.before():
        window = _window(local, list(op.operands)[1:], whole, local.operand_dims[0])
        for dim, position in enumerate(window.at):
            op.operands[1 + dim] = position
    op.attributes["slice_sizes"] = i64_array(window.size)
    op.results[0].set_type(retype(kind, window.size))
    with local.after():
        if window.single:
            return [hlo.select(window.here(), op.results[0], at.splat(kind, nothing))]
        margins = window.margins()
        empty = at.splat(retype(kind, [s + 2 * m for s, m in zip(kind.shape, margins, strict=True)]), nothing)
        placed = hlo.dynamic_update_slice(empty, op.results[0], window.offsets())
        high = [m + s for s, m in zip(kind.shape, margins, strict=True)]
        return [hlo.slice(placed, i64_array(margins), i64_array(high), i64_array([1] * len(high)))]


def _clamp(op: Any, first: int, shape: Sequence[int], sizes: Sequence[int]) -> None:
    """Clamps the positions, operands ``first`` and following, to the whole array. Constants stay as they are."""
    starts = list(op.operands)[first:]
    if all(_is_constant(start) for start in starts):
        return
    for index, (start, n, s) in enumerate(zip(starts, shape, sizes, strict=True)):
        op.operands[first + index] = at.clamped(start, n - s)


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "stablehlo.constant"


def localize_dynamic_update_slice(local: Local) -> None:
    op, sizes = local.op, local.operand_shapes[1]
    if not _cuts(local, sizes):
        return
    with local.before():
        window = _window(local, list(op.operands)[2:], sizes, local.operand_dims[0])
        tile, update = op.operands[0], op.operands[1]
        old = hlo.dynamic_slice(tile, window.at, i64_array(window.size))
        if window.single:
            mask = window.here()
        else:
            zero = at.nothing_text(update.type.element_type)
            room = padded(update, window.margins(), zero)
            update = hlo.dynamic_slice(room, window.offsets(), i64_array(window.size))
            mask = _overlap(window)
        op.operands[1] = hlo.select(mask, update, old)
        for dim, position in enumerate(window.at):
            op.operands[2 + dim] = position


def _overlap(window: Window) -> Any:
    """i1, of the window's shape: which of its elements belong to the slice."""
    kind, out = at.i32(window.size), None
    for dim, (s, shift) in enumerate(zip(window.slice, window.shift, strict=True)):
        if shift is not None:
            element = hlo.add(hlo.iota(kind, dim), at.spread(shift, window.size))
            inside = at.within(element, s)
            out = inside if out is None else hlo.and_(out, inside)
    return out


define_legacy("stablehlo.dynamic_slice", "dynamic_slice", dynamic_slice, localize_dynamic_slice)
define_legacy("stablehlo.dynamic_update_slice", "dynamic_slice", dynamic_update_slice, localize_dynamic_update_slice)
