"""reduce_window: pooling by halo, cumulative ops by a scan over the devices.

A dimension is one of

1. untouched (window of 1): one plain factor;
2. slid over: operand and result split alike, and each device gets the elements that the windows of its results span;
   beyond the array stands the initial value, so that a padded dimension is split only where the initial value is the
   combiner's identity. Max pooling by windows of 3 with stride 2 of 17 elements on 4 devices: tiles of 5 elements
   and of 2 results; device 1 has the results 2 and 3 and needs the elements 4 to 8;
3. cumulative (a window as long as the dimension, padded at one side): each device scans its tile, the totals are
   gathered (one element of each tile), and the reduction of the totals before (or after) the tile is joined in. The
   cumulative sum of 1..8 on 4 devices: the tiles are (1, 3), (3, 7), (5, 11), (7, 15), the totals 3, 7, 11, 15;
   device 2 adds 3 + 7 and has (15, 21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import dense_i64, i64_array, ints, ints_or, operation, shape_of
from shardpass.ops.halo.moving import Along
from shardpass.ops.halo.plans import Line, WindowSlide, gather, plan_slide
from shardpass.ops.halo.reach import Reach, split_reaches, windowed_factor
from shardpass.ops.halo.transfers import Window, tile_window
from shardpass.ops.halo.trim import trimmed
from shardpass.ops.halo.windows import extend, fitted, overwrite_outside
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.reducers import combiner_of, is_identity
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import cut
from shardpass.ops.tiles.positions import compare, i32, spread
from shardpass.ops.tiles.summing import reduced


@dataclass(frozen=True, slots=True)
class Sliding:
    """The parameters by which a window slides along one dimension."""

    window: int
    stride: int
    low: int
    high: int
    base_dilation: int
    window_dilation: int

    @property
    def plain(self) -> bool:
        return (self.window, self.stride, self.low, self.high, self.base_dilation) == (1, 1, 0, 0, 1)

    @property
    def pads(self) -> bool:
        """Whether a window may contain padding."""
        return bool(self.low or self.high or self.base_dilation > 1)

    def scans(self, size: int) -> bool:
        """Return whether result i is the reduction of all elements up to i, or of all from i on."""
        steps = (self.stride, self.base_dilation, self.window_dilation)
        ends = ((size - 1, 0), (0, size - 1))
        return steps == (1, 1, 1) and self.window == size > 1 and (self.low, self.high) in ends


def padding_of(op: Any, count: int) -> list[tuple[int, int]]:
    """Read (low, high) of each dimension."""
    if "padding" not in op.attributes:
        return [(0, 0)] * count
    table = np.array(ir.DenseIntElementsAttr(op.attributes["padding"]), dtype=np.int64)
    return [(int(low), int(high)) for low, high in np.broadcast_to(table, (count, 2))]


def slidings(op: Any) -> tuple[Sliding, ...]:
    windows = ints(op.attributes["window_dimensions"])

    count = len(windows)
    rows = zip(
        windows,
        ints_or(op, "window_strides", count),
        padding_of(op, count),
        ints_or(op, "base_dilations", count),
        ints_or(op, "window_dilations", count),
        strict=True,
    )
    return tuple(Sliding(w, s, low, high, base, wide) for w, s, (low, high), base, wide in rows)


def cut_first(op: Any) -> list[Any] | None:
    """Cut negative padding from the operands (``halo.trim``). None where no padding is negative."""
    moves = slidings(op)
    count = len(op.operands) // 2
    trim = trimmed(
        shape_of(op.operands[0]), range(len(moves)), [(m.low, m.high) for m in moves], [m.base_dilation for m in moves]
    )
    if not trim.cuts:
        return None
    values = [trim.of(op.operands[index], op.operands[count + index]) for index in range(count)]
    made = op.clone()
    for index, value in enumerate(values):
        made.operands[index] = value
    made.attributes["padding"] = dense_i64(trim.padding)
    made.attributes["base_dilations"] = i64_array(trim.dilation)
    return list(made.results)


def peeled(value: Any) -> Any:
    """Follow the scalar ``value`` back through broadcasts and reshapes to the scalar at their start."""
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if op.name not in ("stablehlo.broadcast_in_dim", "stablehlo.reshape") or shape_of(op.operands[0]):
            return value
        value = op.operands[0]
    return value


def scanner(op: Any) -> str:
    """Return the combiner if scans by the op can be joined over devices, else ""."""
    name = combiner_of(op) if len(op.operands) == 2 else ""
    return name if name and is_identity(peeled(op.operands[1]), name) else ""


@dataclass(frozen=True, slots=True)
class Scan:
    """A cumulative dimension; ``window``: its tiles; ``backward``: a result reduces the elements from its own on."""

    line: Line
    backward: bool
    size: int
    window: Window


@dataclass(frozen=True, kw_only=True)
class ReduceWindowPlan(LocalPlan):
    """The plan of a reduce_window: halos of the operands (``slides``), the op on tiles, the completion of ``scans``.

    ``windows``, ``padding`` and ``dilation`` are those of the op on tiles.
    """

    slides: tuple[tuple[int, WindowSlide], ...]  # (operand, its windows), in the order in which they are built
    scans: tuple[Scan, ...]
    windows: Shape
    padding: tuple[tuple[int, int], ...]
    dilation: Shape


@dataclass(frozen=True, eq=False)
class ReduceWindowOp(OpModel[ReduceWindowPlan]):
    """A reduce_window. ``scanner``: the combiner if scans can be joined over devices, else "".

    ``reaches`` are those of operand 0; the other operands are alike but for their element type.
    """

    rule: Rule
    dims: tuple[Sliding, ...]
    reaches: tuple[Reach, ...]
    scanner: str
    elements: tuple[str, ...]

    def plan(self, split: Split) -> ReduceWindowPlan:
        padding, dilation = [(about.low, about.high) for about in self.dims], [d.base_dilation for d in self.dims]
        shape, slides = list(split.operand_tile(0)), []
        for reach in split_reaches(self.reaches, 0, split):
            line = Line.of(split, reach.dim, split.operands[0][reach.dim], "windows across tiles")
            for index, element in enumerate(self.elements):
                slide = plan_slide(line, shape, element_type(element), reach)
                slides.append((index, slide))
            padding[reach.dim], dilation[reach.dim] = slide.padding, slide.dilation
            shape[reach.dim] = slide.halo.window.width
        scans, windows = self._scans(split), [about.window for about in self.dims]
        for scan in scans:
            dim, tile = scan.line.dim, scan.window.width
            windows[dim], padding[dim] = tile, (0, tile - 1) if scan.backward else (tile - 1, 0)
        collectives = [c for _, one in slides for c in one.halo.collectives]
        for scan in scans:
            totals = prod(n for d, n in enumerate(split.result_tile(0)) if d != scan.line.dim)
            collectives.append(gather(scan.line, element_type(self.elements[0]), totals))
        return ReduceWindowPlan(
            split,
            tuple(collectives),
            slides=tuple(slides),
            scans=tuple(scans),
            windows=tuple(windows),
            padding=tuple(padding),
            dilation=tuple(dilation),
        )

    def _scans(self, split: Split) -> list[Scan]:
        out, slid = [], {reach.dim for reach in self.reaches}
        for dim, (about, axes) in enumerate(zip(self.dims, split.operands[0], strict=True)):
            if axes and not about.plain and dim not in slid:
                line = Line.of(split, dim, axes, "totals of a scan across tiles")
                size = split.operand_shapes[0][dim]
                out.append(Scan(line, about.low == 0, size, tile_window(size, line.count)))
        return out

    def emit(self, plan: ReduceWindowPlan, site: Site) -> Sequence[Any]:
        op, count = site.op, len(self.elements)
        with site.before():
            for index, slide in plan.slides:
                op.operands[index] = extend(site, op.operands[index], slide.halo, op.operands[count + index])
            for index, slide in plan.slides:
                op.operands[index] = fitted(site, op.operands[index], slide, op.operands[count + index])
            for scan in plan.scans:
                if scan.backward:  # padding lies at the end, where these scans begin
                    op.operands[0] = overwrite_outside(
                        site, op.operands[0], scan.line, scan.size, scan.window, op.operands[1]
                    )
        op.attributes["padding"] = dense_i64(plan.padding)
        op.attributes["base_dilations"] = i64_array(plan.dilation)
        op.attributes["window_dimensions"] = i64_array(plan.windows)
        made = site.keep()
        with site.after():
            for scan in plan.scans:
                made = [self._completed(site, made[0], scan)]
        return made

    def _completed(self, site: Site, out: Any, scan: Scan) -> Any:
        """Join ``out``, the scans of tiles, with the reduction of the tiles before (or after) each."""
        initial, along, dim = site.op.operands[1], Along(site, scan.line), scan.line.dim
        at = 0 if scan.backward else shape_of(out)[dim] - 1
        totals = along.gather(cut(out, dim, at, at + 1))
        others = reduced(_others(along, totals, initial, scan.backward), [dim], initial, self.scanner)
        kept = [d for d in range(len(shape_of(out))) if d != dim]
        before = hlo.broadcast_in_dim(out.type, others, i64_array(kept))
        return ir.Operation.create(f"stablehlo.{self.scanner}", results=[out.type], operands=[before, out]).results[0]


def reduce_window(op: Any) -> OpModel[Any]:
    count = len(op.operands) // 2
    elements = tuple(str(op.operands[i].type.element_type) for i in range(count))
    return _reduce_window(shape_of(op.operands[0]), shape_of(op.results[0]), slidings(op), scanner(op), elements)


@lru_cache(maxsize=4096)
def _reduce_window(
    source: Shape, target: Shape, dims: tuple[Sliding, ...], joins: str, elements: tuple[str, ...]
) -> ReduceWindowOp:
    count = len(elements)
    build = RuleBuilder([len(source)] * count + [0] * count, [len(target)] * count)
    reaches = []
    for dim, (about, n, m) in enumerate(zip(dims, source, target, strict=True)):
        if about.pads and not joins:
            _stuck(build, count, dim, n, m)
            continue
        build.along(dim, windowed_factor(build, n, m), count, count)
        if not about.plain and not (joins and about.scans(n)):
            span = (about.window - 1) * about.window_dilation + 1
            reaches.append(Reach(0, dim, n, m, -about.low, about.stride, span, about.base_dilation))
    return ReduceWindowOp(build.build(Priority.CONTRACTION), dims, tuple(reaches), joins, elements)


def _stuck(build: RuleBuilder, count: int, dim: int, size: int, results: int) -> None:
    """Keep a padded dimension whole where the initial value is not known to be the combiner's identity.

    The specification takes it for the padding, XLA skips the padding: only a whole window is right by both.
    """
    given, made = build.factor(size, Kind.REPLICATED), build.factor(results, Kind.REPLICATED)
    for index in range(count):
        build.operand(index, dim, given)
        build.result(index, dim, made)


def _others(along: Along, totals: Any, initial: Any, backward: bool) -> Any:
    """Replace the totals of the device's own tile and of the tiles after it by the initial value."""
    shape = shape_of(totals)
    here = spread(along.number(range(along.line.count)), shape)
    matters = compare("GT" if backward else "LT", hlo.iota(i32(shape), along.line.dim), here)
    return hlo.select(matters, totals, spread(initial, shape))


define(
    "stablehlo.reduce_window",
    reduce_window,
    note="every dimension; a padded dimension only if the body is one binary op, such as add, and the initial value is "
    "the identity of that op",
    sends="halos; totals of scans",
    context_free=False,
    expand=cut_first,
)
