"""select_and_scatter (the gradient of max pooling): devices on both sides of a tile's border process shared windows.

A dimension along which windows slide is split for operand, source and result alike. A device's results come from every
window that touches its tile: it gets the source of these windows and the operand that they span, scatters into the
whole span, and keeps its tile. A source beyond the array is the sum's identity, so it adds nothing.

Example: 8 elements on 2 devices, windows of 3 with stride 2: window j has the elements 2j to 2j+2, and there are the
windows 0, 1 and 2. The tile of elements 4 to 7 is touched by the windows 1, 2 and 3 (beyond the last), so that every
device looks at three: device 0 at -1, 0 and 1, which span the elements -2 to 4, device 1 at 1, 2 and 3, which span 2
to 8.

Padded dimensions are not split (JAX pads with an op of its own): a value that stands for padding on a tile must never
be selected, and no value loses every tie against the least value of the type. Nor are scatters split that do not add: a
window is looked at on two devices, and only zero adds nothing on the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shardpass.element_types import element_type
from shardpass.ir.tensors import ints_or, retype, shape_of
from shardpass.ops.families.reduce_window import padding_of
from shardpass.ops.halo.moving import Along
from shardpass.ops.halo.plans import Halo, Line, plan_halo
from shardpass.ops.halo.reach import windowed_factor
from shardpass.ops.halo.transfers import Table, Window, tile_of
from shardpass.ops.halo.windows import extend
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.reducers import combiner_of
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import cut_at, zeros

OPERAND, SOURCE = 0, 1


@dataclass(frozen=True, slots=True)
class Touching:
    """The windows, ``window`` long and ``stride`` apart, that touch the ceil tiles of ``size`` elements."""

    size: int
    window: int
    stride: int

    def first(self, count: int) -> Table:
        """Return each position's first window, which begins no later than the tile."""
        tile = tile_of(self.size, count)
        starts = (p * tile for p in range(count))
        return tuple(min(-(-(s - self.window + 1) // self.stride), s // self.stride) for s in starts)

    def number(self, count: int) -> int:
        """Count the windows that a position processes."""
        tile = tile_of(self.size, count)
        ends = ((p + 1) * tile - 1 for p in range(count))
        return max(e // self.stride - f + 1 for e, f in zip(ends, self.first(count), strict=True))

    def span(self, count: int) -> int:
        """Count the elements from the start of the first of these windows to the start of the one after the last."""
        return (self.number(count) - 1) * self.stride + max(self.window, self.stride)

    def sources(self, count: int) -> Window:
        """Return the windows that each position processes, which are elements of the source."""
        first, number = self.first(count), self.number(count)
        return Window(first, tuple(f + number for f in first), number)

    def elements(self, count: int) -> Window:
        """Return the elements of the operand that these windows span."""
        start, span = tuple(f * self.stride for f in self.first(count)), self.span(count)
        return Window(start, tuple(s + span for s in start), span)


@dataclass(frozen=True, kw_only=True)
class SelectAndScatterPlan(LocalPlan):
    """The plan: fetch ``halos``, of (operand, windows); scatter into ``shape``; cut along the lines of ``kept``."""

    halos: tuple[tuple[int, Halo], ...]
    shape: Shape
    kept: tuple[tuple[Line, Table], ...]  # at position p from table[p] on


@dataclass(frozen=True, eq=False)
class SelectAndScatterOp(OpModel[SelectAndScatterPlan]):
    rule: Rule
    touching: tuple[Touching | None, ...]  # for each dimension; None where no window slides
    element: str

    def plan(self, split: Split) -> SelectAndScatterPlan:
        shapes = [list(split.operand_tile(OPERAND)), list(split.operand_tile(SOURCE))]
        result, halos, kept = list(split.result_tile(0)), [], []
        for dim, (about, axes) in enumerate(zip(self.touching, split.operands[OPERAND], strict=True)):
            if about is None or not axes:
                continue
            line = Line.of(split, dim, axes, "windows across tiles")
            windows = about.elements(line.count), about.sources(line.count)
            for index, window in enumerate(windows):
                size, shape = split.operand_shapes[index][dim], shapes[index]
                halos.append((index, plan_halo(line, shape, element_type(self.element), size, window)))
                shape[dim] = window.width
            kept.append((line, tuple(p * result[dim] - s for p, s in enumerate(windows[OPERAND].start))))
            result[dim] = windows[OPERAND].width
        collectives = tuple(c for _, halo in halos for c in halo.collectives)
        return SelectAndScatterPlan(split, collectives, halos=tuple(halos), shape=tuple(result), kept=tuple(kept))

    def emit(self, plan: SelectAndScatterPlan, site: Site) -> Sequence[Any]:
        op, out = site.op, site.op.results[0]
        with site.before():
            for index, halo in plan.halos:
                value = op.operands[index]
                op.operands[index] = extend(site, value, halo, zeros(value.type.element_type))
        out.set_type(retype(out.type, plan.shape))
        with site.after():
            for line, starts in plan.kept:
                out = cut_at(out, line.dim, Along(site, line).number(starts), plan.split.result_tile(0)[line.dim])
        return [out]


def select_and_scatter(op: Any) -> OpModel[Any]:
    shape, source = shape_of(op.operands[OPERAND]), shape_of(op.operands[SOURCE])
    rank = len(shape)
    windows, strides = (ints_or(op, name, rank) for name in ("window_dimensions", "window_strides"))
    element = str(op.results[0].type.element_type)
    return _select_and_scatter(
        shape, source, windows, strides, tuple(padding_of(op, rank)), combiner_of(op, 1) == "add", element
    )


@lru_cache(maxsize=4096)
def _select_and_scatter(
    shape: Shape,
    source: Shape,
    windows: Shape,
    strides: Shape,
    padding: tuple[tuple[int, int], ...],
    splits: bool,
    element: str,
) -> SelectAndScatterOp:
    build = RuleBuilder([len(shape), len(shape), 0], [len(shape)])
    touching: list[Touching | None] = []
    for dim, (n, m, (low, high)) in enumerate(zip(shape, source, padding, strict=True)):
        plain = (windows[dim], strides[dim], low, high) == (1, 1, 0, 0)
        kind = Kind.PARALLEL if plain or (splits and not low and not high) else Kind.REPLICATED
        factor = windowed_factor(build, n, m, kind=kind)
        build.along(dim, factor, operands=2)
        slides = not plain and kind is Kind.PARALLEL
        touching.append(Touching(n, windows[dim], strides[dim]) if slides else None)
    return SelectAndScatterOp(build.build(Priority.CONTRACTION), tuple(touching), element)


define(
    "stablehlo.select_and_scatter",
    select_and_scatter,
    note="every dimension without padding, if the scatter is a sum",
    sends="halos",
)
