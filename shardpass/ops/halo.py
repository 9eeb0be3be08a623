"""Halos: a tile extended by what it needs of the other tiles of a dimension.

``extend`` takes a tile and the window that each position wants and builds the window, with a given value where it
leaves the array (beyond its borders and in the padding of a dimension that does not divide). Three ways, of which the
cheapest is taken, the first among equals:

1. beside: strips of the neighbours' tiles next to the own, one ``collective_permute`` for each neighbour that is
   reached (``strips``); where windows drift against the tiles (a padded, cut, strided or uneven dimension) each device
   slices its window from them;
2. rounds of ``collective_permute``, each device taking and putting at a place of its own (``transfers``, ``placing``);
3. one ``all_gather`` of the dimension, and a slice.

What lies outside of the array is overwritten then, unless it is zero as it should be: who has no sender receives zeros.

``HaloRule`` carries what a family's rule knows of whole shapes to its rewrite and to the price of a split.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, operation, retype, shape_of, splat, splat_text
from shardpass.ops.assign import LATENCY_BYTES
from shardpass.ops.factors import Axes, DimAxes, Kind, Priority, Rule, RuleBuilder, unproject
from shardpass.ops.local import Local
from shardpass.ops.masking import identity_text
from shardpass.ops.mesh import PrimeMesh
from shardpass.ops.placing import Box, Placement, placed
from shardpass.ops.positions import compare, i32, spread
from shardpass.ops.strips import Layout, beside
from shardpass.ops.transfers import Exchange, Table, Window, plan_exchange, tile_of, tiles


@dataclass(frozen=True, slots=True)
class Reach:
    """Which elements of an operand's dimension a result's dimension needs.

    Result j needs ``first + j * step`` up to ``span`` elements further, in coordinates where element i of the operand
    lies at ``i * dilation``. ``backward``: results count from the end: tile p is the p-th from the end.
    """

    operand: int
    dim: int
    factor: int
    size: int
    results: int
    first: int = 0
    step: int = 1
    span: int = 1
    dilation: int = 1
    backward: bool = False
    strict: bool = False  # all of a window is used, also where no result needs it

    def width(self, count: int) -> int:
        """Coordinates that a tile of results spans."""
        return (tile_of(self.results, count) - 1) * self.step + self.span

    def window(self, count: int) -> Window:
        """In coordinates."""
        tile = tile_of(self.results, count)
        start, stop = [], []
        for p in range(count):
            low = self.results - (p + 1) * tile if self.backward else p * tile
            high = min(low + tile, self.results)
            start.append(self.first + low * self.step)
            used = high > low or self.strict
            last = low + tile if self.strict else high
            stop.append(self.first + (last - 1) * self.step + self.span if used else start[-1])
        return Window(tuple(start), tuple(stop), self.width(count))

    def elements(self, count: int) -> tuple[Window, Table]:
        """The operand's elements in each window, and how far into the window the first of them lies."""
        whole, d = self.window(count), self.dilation
        if d == 1:
            return whole, (0,) * count
        start = tuple(-(-s // d) for s in whole.start)
        phase = tuple(i * d - s for i, s in zip(start, whole.start, strict=True))
        stop = tuple(max(i, -(-s // d)) for i, s in zip(start, whole.stop, strict=True))
        width = max((whole.width - 1 - p) // d + 1 for p in phase)
        return Window(start, stop, max(width, 1)), phase

    def drifts(self, count: int) -> bool:
        """Whether windows lie differently to the tiles of their positions."""
        tile = tile_of(self.size, count)
        return len({start - p * tile for p, start in enumerate(self.elements(count)[0].start)}) > 1


@dataclass(frozen=True, slots=True)
class HaloRule(Rule):
    """A rule with the reaches of its windowed dimensions; ``shapes`` and ``element_types`` of the whole operands."""

    reaches: tuple[Reach, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    element_types: tuple[str, ...] = ()

    def reach(self, operand: int, dim: int) -> Reach | None:
        return next((r for r in self.reaches if (r.operand, r.dim) == (operand, dim)), None)


def halo_rule(
    op: Any, build: RuleBuilder, reaches: Sequence[Reach], priority: Priority, combiner: str = ""
) -> HaloRule:
    """``build``'s rule with ``reaches``; called while the operands have their whole types."""
    plain = build.build(priority, combiner)
    return HaloRule(
        plain.factors,
        plain.operands,
        plain.results,
        plain.priority,
        plain.combiner,
        reaches=tuple(reaches),
        shapes=tuple(shape_of(v) for v in op.operands),
        element_types=tuple(str(v.type.element_type) for v in op.operands),
    )


def in_order(rule: HaloRule, operand: int, dims: DimAxes, mesh: PrimeMesh) -> list[int]:
    """The operand's dimensions as they are best extended: those whose windows drift last.

    Each device cuts its own part there; made last, it is made for the op alone, and not kept to be sent on.
    """

    def drifts(dim: int) -> bool:
        reach = rule.reach(operand, dim)
        return bool(dims[dim]) and reach is not None and reach.drifts(mesh.count(dims[dim]))

    return sorted(range(len(dims)), key=drifts)


def windowed_factor(build: RuleBuilder, *sizes: int, kind: Kind = Kind.PARALLEL) -> int:
    """One factor for dimensions of different sizes, each of which splits into tiles of its own."""
    return build.factor(max(sizes), kind, elastic=len(set(sizes)) > 1)


# ---------------------------------------------------------------- prices


class Way(enum.Enum):
    """How a window is brought."""

    BESIDE = "beside"
    ROUNDS = "rounds"
    GATHER = "gather"


@dataclass(frozen=True, slots=True)
class Choice:
    way: Way
    layout: Layout
    plan: Exchange
    price: int  # bytes received, latencies included from the second collective on


def choose(size: int, count: int, window: Window, cross_bytes: int) -> Choice:
    """The cheapest way to bring ``window``; an element of the dimension has ``cross_bytes``."""
    layout, plan = beside(size, count, window), plan_exchange((tiles(size, count),), window)
    priced = [
        (layout.received * cross_bytes + LATENCY_BYTES * max(0, len(layout.shipments) - 1), Way.BESIDE),
        (plan.received * cross_bytes + LATENCY_BYTES * max(0, len(plan.rounds) - 1), Way.ROUNDS),
        ((count - 1) * tile_of(size, count) * cross_bytes, Way.GATHER),
    ]
    price, way = min(priced, key=lambda one: one[0])
    return Choice(way, layout, plan, price)


def halo_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    """``extra`` of an op with a HaloRule: bytes that a device receives in halos."""
    assert isinstance(rule, HaloRule)
    total = 0
    for reach in rule.reaches:
        axes = factors.get(reach.factor, ())
        if axes:
            shape = rule.shapes[reach.operand]
            tile = mesh.tile(shape, unproject(rule, rule.operands[reach.operand], shape, factors, mesh.sizes))
            cross = prod(n for d, n in enumerate(tile) if d != reach.dim)
            cross_bytes = element_type(rule.element_types[reach.operand]).bytes(cross)
            count = mesh.count(axes)
            total += choose(reach.size, count, reach.elements(count)[0], cross_bytes).price
    return total


# ---------------------------------------------------------------- building


def zeros(element: Any, shape: Sequence[int] = ()) -> Any:
    """Zeros of any element type."""
    return splat(ir.RankedTensorType.get(list(shape), element), str(identity_text("add", element)))


def is_zero(value: Any) -> bool:
    """Whether a scalar is known to be zero (and not -0.0): a constant, perhaps converted, broadcast or reshaped."""
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if op.name == "stablehlo.constant":
            return splat_text(op) == identity_text("add", value.type.element_type)
        if op.name not in ("stablehlo.convert", "stablehlo.broadcast_in_dim", "stablehlo.reshape"):
            return False
        value = op.operands[0]
    return False


def cut(value: Any, dim: int, start: int, stop: int, stride: int = 1) -> Any:
    """``value[start:stop:stride]`` along ``dim``; itself where that is all of it."""
    shape = shape_of(value)
    if (start, stop, stride) == (0, shape[dim], 1):
        return value
    starts, strides, stops = [0] * len(shape), [1] * len(shape), list(shape)
    starts[dim], stops[dim], strides[dim] = start, stop, stride
    return hlo.slice(value, starts, stops, strides)


def grow(value: Any, dim: int, low: int, high: int, fill: Any | None = None, interior: int = 0) -> Any:
    """``value`` padded along ``dim`` with the scalar ``fill`` (zero)."""
    if not (low or high or interior):
        return value
    rank = len(shape_of(value))
    rows = []
    for amount in (low, high, interior):
        row = [0] * rank
        row[dim] = amount
        rows.append(row)
    return hlo.pad(value, zeros(value.type.element_type) if fill is None else fill, *rows)


def cut_at(value: Any, dim: int, start: Any, size: int) -> Any:
    """``size`` elements along ``dim`` from ``start``, a ``tensor<i32>``."""
    shape = list(shape_of(value))
    if shape[dim] == size:
        return value
    zero = splat(i32(), 0)
    shape[dim] = size
    return hlo.dynamic_slice(value, [start if d == dim else zero for d in range(len(shape))], shape)


def _put_at(target: Any, value: Any, dim: int, start: Any) -> Any:
    zero = splat(i32(), 0)
    rank = len(shape_of(target))
    return hlo.dynamic_update_slice(target, value, [start if d == dim else zero for d in range(rank)])


@dataclass(frozen=True, slots=True)
class Halos:
    """Builds halos along the dimension ``dim`` that ``axes`` split, at the current insertion point and location."""

    local: Local
    dim: int
    axes: Axes
    cause: str

    @property
    def count(self) -> int:
        return self.local.mesh.count(self.axes)

    def number(self, table: Sequence[int]) -> Any:
        """``tensor<i32>``: the entry of the device's position."""
        return device_value(np.asarray(table, np.int64)[self.local.mesh.index(self.axes)])

    def permute(self, value: Any, source: Sequence[int]) -> Any:
        """Position p gets the value of position ``source[p]``; zeros where that is -1."""
        mesh = self.local.mesh
        pairs = [(row[q], row[p]) for row in mesh.groups(self.axes) for p, q in enumerate(source) if q >= 0]
        op = hlo.CollectivePermuteOp(value, dense_i64(pairs), channel_handle=self._channel())
        self.local.explain(op.operation, self.axes, self.cause)
        return op.operation.results[0]

    def gather(self, value: Any) -> Any:
        """The tiles of all positions side by side."""
        shape = list(shape_of(value))
        shape[self.dim] *= self.count
        groups = dense_i64(self.local.mesh.groups(self.axes))
        op = hlo.AllGatherOp(
            [retype(value.type, shape)],
            [value],
            self.dim,
            groups,
            channel_handle=self._channel(),
            use_global_device_ids=True,
        )
        self.local.explain(op.operation, self.axes, self.cause)
        return op.operation.results[0]

    def _channel(self) -> Any:
        return hlo.ChannelHandle.get(next(self.local.channels), 1)

    # ------------------------------------------------------------ windows

    def extend(self, value: Any, size: int, window: Window, fill: Any | None) -> Any:
        """The window of each position over the ceil tiles of an array of ``size``.

        ``fill``: the scalar that stands where the window leaves the array; None: anything may stand there.
        """
        shape = shape_of(value)
        below, above = window.leaves_below(), window.leaves_above(size)
        fill = fill if below or above else None
        if window.width == 0 or shape[self.dim] == 0:
            out = list(shape)
            out[self.dim] = window.width
            return zeros(value.type.element_type, out) if fill is None else spread(fill, out)
        cross = element_type(str(value.type.element_type)).bytes(prod(n for d, n in enumerate(shape) if d != self.dim))
        choice = choose(size, self.count, window, cross)
        if choice.way is Way.GATHER:
            found = self._gathered(value, window)
        elif choice.way is Way.ROUNDS:
            found = self.exchange(value, choice.plan, window.width)
        else:
            found = self._beside(value, choice.layout)
            if fill is not None and is_zero(fill) and not choice.layout.shared:
                # who has no sender receives zeros: only the padding of the last tile is left to overwrite
                below, above = False, above and size % self.count > 0
        return self.outside(found, size, window, fill, below=below, above=above)

    def slide(self, value: Any, reach: Reach, fill: Any) -> tuple[Any, tuple[int, int], int]:
        """(the windows of ``reach``, the padding and the dilation that are left to an op that slides along them)."""
        window, phase = reach.elements(self.count)
        value = self.extend(value, reach.size, window, fill)
        width, spans = reach.width(self.count), (window.width - 1) * reach.dilation + 1
        low, more = max(phase), max(phase) - min(phase)
        high = width - low - spans
        if not more and high >= 0:
            return value, (low, high), reach.dilation
        # windows begin at different places between two elements: dilated here, and each device cuts its part
        value = grow(value, self.dim, low, high + more, fill, reach.dilation - 1)
        return cut_at(value, self.dim, self.number([low - p for p in phase]), width), (0, 0), 1

    def _beside(self, value: Any, layout: Layout) -> Any:
        """The strips side by side, and of them each position's window; zeros where a strip has no sender."""
        pieces = {
            n: cut(value, self.dim, s.first, s.first + s.length) for n, s in enumerate(layout.strips) if not s.distance
        }
        for shipment in layout.shipments:
            box = self.permute(self._taken(value, shipment.take, shipment.size), shipment.source)
            for number, first in shipment.strips:
                pieces[number] = cut(box, self.dim, first, first + layout.strips[number].length)
        for number, strip in enumerate(layout.strips):
            if strip.distance == 0:
                pieces[number] = cut(value, self.dim, strip.first, strip.first + strip.length)
            elif number not in pieces:
                pieces[number] = self._zeros(value, strip.length)
        joined = self._joined([pieces[n] for n in range(len(layout.strips))])
        joined = grow(joined, self.dim, 0, max(0, layout.length - shape_of(joined)[self.dim]))
        return self._taken(joined, layout.offsets, layout.width)

    def _taken(self, value: Any, start: Table, size: int) -> Any:
        """``size`` elements from ``start[p]`` on."""
        if len(set(start)) == 1:
            return cut(value, self.dim, start[0], start[0] + size)
        return cut_at(value, self.dim, self.number(start), size)

    def _joined(self, row: Sequence[Any]) -> Any:
        return row[0] if len(row) == 1 else hlo.concatenate(row, self.dim)

    def _zeros(self, like: Any, length: int) -> Any:
        shape = list(shape_of(like))
        shape[self.dim] = length
        return zeros(like.type.element_type, shape)

    def _gathered(self, value: Any, window: Window) -> Any:
        whole = self.gather(value)
        low = max(0, -min(window.start))
        high = max(0, max(window.start) + window.width - shape_of(whole)[self.dim])
        return cut_at(
            grow(whole, self.dim, low, high), self.dim, self.number([s + low for s in window.start]), window.width
        )

    def outside(
        self, value: Any, size: int, window: Window, fill: Any | None, *, below: bool = True, above: bool = True
    ) -> Any:
        """``value`` (windows) with ``fill`` where its index is outside of the array, at the sides that matter."""
        below = below and any(s < 0 for s in window.start)
        above = above and any(s + window.width > size for s in window.start)
        if fill is None or not (below or above):
            return value
        shape = shape_of(value)
        index = hlo.add(hlo.iota(i32(shape), self.dim), spread(self.number(window.start), shape))
        inside = None
        for bound, direction, matters in ((0, "GE", below), (size, "LT", above)):
            if matters:
                found = compare(direction, index, splat(i32(shape), bound))
                inside = found if inside is None else hlo.and_(inside, found)
        return hlo.select(inside, value, spread(fill, shape))

    # ------------------------------------------------------------ rounds

    def exchange(self, value: Any, plan: Exchange, width: int) -> Any:
        """``width`` elements along the dimension: what ``plan`` brings; elsewhere anything."""
        placement = placed(plan, width)
        if not placement.boxes:
            return self._zeros(value, width)
        longest = max(max(box.take) + box.round.size for box in placement.boxes)
        value = grow(value, self.dim, 0, max(0, longest - shape_of(value)[self.dim]))
        if placement.aligned:
            return self._aligned(value, placement)
        first, *others = placement.boxes
        if len(set(first.put)) == 1:
            left = placement.length - first.put[0] - first.round.size
            found = grow(self._box(value, first), self.dim, first.put[0], left)
        else:
            found = _put_at(
                self._zeros(value, placement.length), self._box(value, first), self.dim, self.number(first.put)
            )
        for box in others:
            found = self._add(found, self._box(value, box), box)
        return cut(found, self.dim, 0, width)

    def _aligned(self, value: Any, placement: Placement) -> Any:
        row, end = [], 0
        for box in placement.boxes:
            if box.put[0] > end:
                row.append(self._zeros(value, box.put[0] - end))
            row.append(self._box(value, box))
            end = box.put[0] + box.round.size
        if placement.length > end:
            row.append(self._zeros(value, placement.length - end))
        return self._joined(row)

    def _box(self, value: Any, box: Box) -> Any:
        taken = self._taken(value, box.take, box.round.size)
        source = box.round.source
        return self.permute(taken, source) if any(q not in (p, -1) for p, q in enumerate(source)) else taken

    def _add(self, target: Any, value: Any, box: Box) -> Any:
        start = self.number(box.put)
        if box.masked:
            shape = shape_of(value)
            meant = compare("LT", hlo.iota(i32(shape), self.dim), spread(self.number(box.round.extent), shape))
            value = hlo.select(meant, value, cut_at(target, self.dim, start, box.round.size))
        return value if shape_of(value) == shape_of(target) else _put_at(target, value, self.dim, start)
