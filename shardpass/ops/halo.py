"""Halos: a tile extended by what it needs of the other tiles of a dimension.

``extend`` takes a tile and the window that each position wants and builds the window, with a given value where it
leaves the array (beyond its borders and in the padding of a dimension that does not divide). Cases:

1. every position's window lies alike to its tile (same start relative to it): pieces of neighbours, one
   ``collective_permute`` for each neighbour that is reached, put side by side; what lies outside is overwritten;
2. windows drift against the tiles (a padded, cut, strided or uneven dimension): rounds of ``collective_permute``, each
   device taking and putting at an offset of its own (``transfers``); what nobody sends keeps the given value;
3. where that would receive about as much as the whole dimension: one ``all_gather`` of it, and a slice.

``HaloRule`` carries what a family's rule knows of whole shapes to its rewrite and to the price of a split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, retype, shape_of
from shardpass.ops.assign import LATENCY_BYTES
from shardpass.ops.factors import Axes, Kind, Priority, Rule, RuleBuilder, unproject
from shardpass.ops.local import Local
from shardpass.ops.masking import identity_text
from shardpass.ops.mesh import PrimeMesh
from shardpass.ops.transfers import Exchange, Held, Round, Table, Window, plan_exchange, tile_of, tiles


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


def windowed_factor(build: RuleBuilder, *sizes: int, kind: Kind = Kind.PARALLEL) -> int:
    """One factor for dimensions of different sizes, each of which splits into tiles of its own."""
    return build.factor(max(sizes), kind, elastic=len(set(sizes)) > 1)


# ---------------------------------------------------------------- prices


def uniform(held: Held, window: Window) -> bool:
    """Whether each window lies alike to its position's tile."""
    return len({s - b for s, b in zip(window.start, held.base, strict=True)}) == 1


def neighbours(window: Window, tile: int) -> list[tuple[int, int, int]]:
    """Of a uniform window: (distance, first local index, length) of each tile that it reaches, in order."""
    start = window.start[0]
    stop = start + window.width
    return [
        (r, max(start - r * tile, 0), min(stop - r * tile, tile) - max(start - r * tile, 0))
        for r in range(start // tile, -(-stop // tile))
    ]


def _cheapest(size: int, count: int, window: Window, cross_bytes: int) -> tuple[int, bool]:
    """(bytes received, latencies included from the second collective on; whether by a gather)."""
    held = tiles(size, count)
    if uniform(held, window):
        sizes = [n for r, _, n in neighbours(window, tile_of(size, count)) if r and abs(r) < count]
    else:
        sizes = [r.size for r in plan_exchange((held,), window).rounds]
    if not sizes:
        return 0, False
    near = sum(sizes) * cross_bytes + LATENCY_BYTES * (len(sizes) - 1)
    whole = (count - 1) * tile_of(size, count) * cross_bytes
    return (whole, True) if whole < near else (near, False)


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
            total += _cheapest(reach.size, count, reach.elements(count)[0], cross_bytes)[0]
    return total


# ---------------------------------------------------------------- building


def scalar(value: int) -> Any:
    """A constant ``tensor<i32>``."""
    kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    return hlo.constant(ir.DenseElementsAttr.get(np.asarray(value, np.int32), type=kind))


def zeros(element: Any, shape: Sequence[int] = ()) -> Any:
    """Zeros of any element type."""
    kind = ir.RankedTensorType.get(list(shape), element)
    text = identity_text("add", element)
    # parsed whole: the typed builder of jaxlib 0.10 cannot take elements of a complex type
    made = ir.Operation.parse(f'"stablehlo.constant"() {{value = dense<{text}> : {kind}}} : () -> {kind}')
    made.location = ir.Location.current
    ir.InsertionPoint.current.insert(made)
    return made.results[0]


def splat(value: Any, shape: Sequence[int]) -> Any:
    """A scalar tensor, broadcast."""
    return hlo.broadcast_in_dim(retype(value.type, shape), value, ir.DenseI64ArrayAttr.get([]))


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
    zero = scalar(0)
    shape[dim] = size
    return hlo.dynamic_slice(value, [start if d == dim else zero for d in range(len(shape))], shape)


def _put_at(target: Any, value: Any, dim: int, start: Any) -> Any:
    zero = scalar(0)
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
        held = tiles(size, self.count)
        cross = element_type(str(value.type.element_type)).bytes(prod(n for d, n in enumerate(shape) if d != self.dim))
        fill = fill if fill is not None and window.leaves(size) else None
        if window.width == 0 or shape[self.dim] == 0:
            out = list(shape)
            out[self.dim] = window.width
            return zeros(value.type.element_type, out) if fill is None else splat(fill, out)
        if _cheapest(size, self.count, window, cross)[1]:
            return self.outside(self._gathered(value, window), size, window, fill)
        if uniform(held, window):
            return self.outside(self._beside(value, window), size, window, fill)
        return self.exchange(value, plan_exchange((held,), window), window.width, fill)

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

    def _beside(self, value: Any, window: Window) -> Any:
        """Uniform windows: the pieces of the neighbours side by side."""
        pieces = []
        for distance, first, length in neighbours(window, shape_of(value)[self.dim]):
            piece = cut(value, self.dim, first, first + length)
            if distance:
                source = [p + distance if 0 <= p + distance < self.count else -1 for p in range(self.count)]
                source = [q if b > a else -1 for q, a, b in zip(source, window.start, window.stop, strict=True)]
                if any(q >= 0 for q in source):
                    piece = self.permute(piece, source)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else hlo.concatenate(pieces, self.dim)

    def _gathered(self, value: Any, window: Window) -> Any:
        whole = self.gather(value)
        low = max(0, -min(window.start))
        high = max(0, max(window.start) + window.width - shape_of(whole)[self.dim])
        return cut_at(
            grow(whole, self.dim, low, high), self.dim, self.number([s + low for s in window.start]), window.width
        )

    def outside(self, value: Any, size: int, window: Window, fill: Any | None) -> Any:
        """``value`` (windows) with ``fill`` where its index in the array is outside of it."""
        if fill is None:
            return value
        shape = shape_of(value)
        i32 = ir.IntegerType.get_signless(32)
        kind = ir.RankedTensorType.get(list(shape), i32)
        index = hlo.add(hlo.iota(kind, self.dim), splat(self.number(window.start), shape))
        inside = None
        for bound, direction, matters in (
            (0, "GE", any(s < 0 for s in window.start)),
            (size, "LT", any(s + window.width > size for s in window.start)),
        ):
            if matters:
                found = hlo.compare(
                    index,
                    splat(scalar(bound), shape),
                    hlo.ComparisonDirectionAttr.get(direction),
                    compare_type=hlo.ComparisonTypeAttr.get("SIGNED"),
                )
                inside = found if inside is None else hlo.and_(inside, found)
        return value if inside is None else hlo.select(inside, value, splat(fill, shape))

    # ------------------------------------------------------------ rounds

    def exchange(self, value: Any, plan: Exchange, width: int, fill: Any | None) -> Any:
        """``width`` elements along the dimension: what ``plan`` brings, elsewhere ``fill`` (zero)."""
        steps = (*plan.kept, *plan.rounds)
        shape = list(shape_of(value))
        longest = max((max(r.take) + r.size for r in steps), default=0)
        value = grow(value, self.dim, 0, max(0, longest - shape[self.dim]))
        shape[self.dim] = max([width, *(max(r.put) + r.size for r in steps)])
        first = steps[0] if steps else None
        if first and first.size == shape[self.dim] and min(first.extent) == first.size:
            found, steps = self._box(value, first), steps[1:]
        else:
            found = splat(zeros(value.type.element_type) if fill is None else fill, shape)
        for step in steps:
            found = self._add_round(found, self._box(value, step), step)
        return cut(found, self.dim, 0, width)

    def _box(self, value: Any, step: Round) -> Any:
        box = cut_at(value, self.dim, self.number(step.take), step.size)
        if any(q not in (p, -1) for p, q in enumerate(step.source)):
            box = self.permute(box, step.source)
        return box

    def _add_round(self, target: Any, box: Any, step: Round) -> Any:
        start = self.number(step.put)
        if min(step.extent) < step.size:
            shape = shape_of(box)
            kind = ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(32))
            meant = hlo.compare(
                hlo.iota(kind, self.dim),
                splat(self.number(step.extent), shape),
                hlo.ComparisonDirectionAttr.get("LT"),
                compare_type=hlo.ComparisonTypeAttr.get("SIGNED"),
            )
            box = hlo.select(meant, box, cut_at(target, self.dim, start, step.size))
        if shape_of(box) == shape_of(target):
            return box
        return _put_at(target, box, self.dim, start)
