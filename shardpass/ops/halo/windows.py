"""Halos: a tile extended by what it needs of the other tiles of a dimension.

``extend`` takes a tile and the window that each position wants and builds the window, in the way that ``reach.choose``
chose, with a given value where it leaves the array (beyond its borders and in the padding of a dimension that does not
divide). What lies outside is overwritten last, unless it is zero as it should be: who has no sender receives zeros.

``exchange`` builds what any plan of rounds brings, for ops whose tiles change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, retype, shape_of, splat
from shardpass.ops.halo.placing import Box, Placement, placed
from shardpass.ops.halo.reach import Reach, Way, choose
from shardpass.ops.halo.strips import Layout
from shardpass.ops.halo.transfers import Exchange, Table, Window
from shardpass.ops.local import Local
from shardpass.ops.splits.factors import Axes
from shardpass.ops.tiles.boxes import cut, cut_at, grow, is_zero, put_at, zeros
from shardpass.ops.tiles.positions import compare, i32, spread


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
        rows, sources = self.local.mesh.groups(self.axes), np.asarray(source, np.int64)
        receivers = np.flatnonzero(sources >= 0)
        pairs = np.stack([rows[:, sources[receivers]], rows[:, receivers]], axis=-1).reshape(-1, 2)
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
            found = put_at(
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
        return value if shape_of(value) == shape_of(target) else put_at(target, value, self.dim, start)
