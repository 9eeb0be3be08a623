"""slice, pad, reverse: a result's element is an operand's element at another index of the dimension.

A dimension that changes is one factor of operand and result, each in tiles of its own; the elements of other tiles
that the tile of a result needs come by a halo (``ops.halo``).

Example: ``x[2:16:2]`` of 16 elements on 4 devices. The tiles of x have 4 elements, those of the 7 results 2. Result j
is element 2 + 2j, so that device 1 needs the elements 6 and 8: its tile has 4 to 7, and 8 comes from device 2. Every
tile can take the stride alone (4 is a multiple of 2): a device keeps 2 of its 4 elements, and only 1 element is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shardpass.element_types import element_type
from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ops.halo.moving import Along
from shardpass.ops.halo.plans import Halo, Line, Rounds, plan_halo, plan_rounds
from shardpass.ops.halo.reach import Reach, split_reaches, windowed_factor
from shardpass.ops.halo.rounds import exchange_rounds
from shardpass.ops.halo.transfers import Table, plan_exchange, reversed_tiles, tile_of, tile_window
from shardpass.ops.halo.windows import extend
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import cut, cut_at

# ---------------------------------------------------------------- slice


@dataclass(frozen=True, slots=True)
class Thinned:
    """A halo of the elements that a tile keeps when it takes every ``stride``-th element from ``phase`` on."""

    phase: int
    stride: int
    halo: Halo


@dataclass(frozen=True, kw_only=True)
class SlicePlan(LocalPlan):
    """The plan of a slice: fetch ``halos`` in order, then slice from ``starts`` to ``limits`` by ``strides``."""

    halos: tuple[Thinned, ...]
    starts: Shape
    limits: Shape
    strides: Shape
    done: bool  # the halos give the tile of the result: nothing is left to the op


@dataclass(frozen=True, eq=False)
class SliceOp(OpModel[SlicePlan]):
    rule: Rule
    starts: Shape
    limits: Shape
    strides: Shape
    reaches: tuple[Reach, ...]
    element: str

    def plan(self, split: Split) -> SlicePlan:
        """Plan a halo that is the window of the result's tile; the same stride then cuts that window."""
        dims, shape = split.operands[0], list(split.operand_tile(0))
        strides, halos = list(self.strides), []
        for reach in split_reaches(self.reaches, 0, split):
            line = Line.of(split, reach.dim, dims[reach.dim], "a slice across tiles")
            thin = _thinned(reach, line.count)
            phase, stride = (0, 1) if thin is reach else (reach.first % reach.step, reach.step)
            shape[reach.dim] = -(-(shape[reach.dim] - phase) // stride)
            halo = plan_halo(line, shape, element_type(self.element), thin.size, thin.elements(line.count)[0])
            shape[reach.dim], strides[reach.dim] = halo.window.width, thin.step
            halos.append(Thinned(phase, stride, halo))
        return SlicePlan(
            split,
            tuple(c for thinned in halos for c in thinned.halo.collectives),
            halos=tuple(halos),
            starts=tuple(0 if axes else start for axes, start in zip(dims, self.starts, strict=True)),
            limits=tuple(n if axes else limit for axes, n, limit in zip(dims, shape, self.limits, strict=True)),
            strides=tuple(strides),
            done=tuple(shape) == split.result_tile(0),
        )

    def emit(self, plan: SlicePlan, site: Site) -> Sequence[Any]:
        value = site.op.operands[0]
        with site.before():
            for thinned in plan.halos:
                dim = thinned.halo.line.dim
                value = cut(value, dim, thinned.phase, shape_of(value)[dim], thinned.stride)
                value = extend(site, value, thinned.halo, None)
        if plan.done:
            site.discard()
            return [value]
        site.op.operands[0] = value
        for name, row in (("start_indices", plan.starts), ("limit_indices", plan.limits), ("strides", plan.strides)):
            site.op.attributes[name] = i64_array(row)
        return site.keep()


def slice_(op: Any) -> OpModel[Any]:
    return _slice(
        shape_of(op.operands[0]),
        shape_of(op.results[0]),
        ints(op.attributes["start_indices"]),
        ints(op.attributes["limit_indices"]),
        ints(op.attributes["strides"]),
        str(op.results[0].type.element_type),
    )


@lru_cache(maxsize=4096)
def _slice(source: Shape, target: Shape, starts: Shape, limits: Shape, strides: Shape, element: str) -> SliceOp:
    build = RuleBuilder([len(source)], [len(target)])
    reaches = []
    for dim, (n, m) in enumerate(zip(source, target, strict=True)):
        build.along(dim, windowed_factor(build, n, m))
        if n != m:
            reaches.append(Reach(0, dim, n, m, starts[dim], strides[dim]))
    return SliceOp(build.build(Priority.PASS_THROUGH), starts, limits, strides, tuple(reaches), element)


def _thinned(reach: Reach, count: int) -> Reach:
    """Restate ``reach`` for tiles that apply the stride before the exchange, if all tiles can apply the same one."""
    if reach.step == 1 or tile_of(reach.size, count) % reach.step:
        return reach
    first, phase = divmod(reach.first, reach.step)
    size = -(-(reach.size - phase) // reach.step)
    # tiles of the thinned dimension are as long as those of the whole one, divided
    if tile_of(size, count) != tile_of(reach.size, count) // reach.step:
        return reach
    return replace(reach, size=size, first=first, step=1)


# ---------------------------------------------------------------- pad

PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


@dataclass(frozen=True, kw_only=True)
class PadPlan(LocalPlan):
    """The plan of a pad: fetch ``halos``, pad to ``shape``, then cut each device's part along the lines of ``cuts``."""

    halos: tuple[Halo, ...]
    low: Shape
    high: Shape
    interior: Shape
    shape: Shape
    done: bool  # the halos give the tile of the result: nothing is left to the op
    cuts: tuple[tuple[Line, Table], ...]  # at position p from table[p] on


@dataclass(frozen=True, eq=False)
class PadOp(OpModel[PadPlan]):
    rule: Rule
    low: Shape
    high: Shape
    interior: Shape
    reaches: tuple[Reach, ...]
    element: str

    def plan(self, split: Split) -> PadPlan:
        """Plan halos filled with the padding value outside of the array; the op itself does interior padding.

        Where tiles begin at different places between two elements, the op pads one step more and the device cuts its
        part.
        """
        shape, tile = list(split.operand_tile(0)), list(split.result_tile(0))
        low, high, halos, cuts = list(self.low), list(self.high), [], []
        for reach in split_reaches(self.reaches, 0, split):
            dim = reach.dim
            line = Line.of(split, dim, split.operands[0][dim], "padding across tiles")
            window, phase = reach.elements(line.count)
            halos.append(plan_halo(line, shape, element_type(self.element), reach.size, window))
            shape[dim] = window.width
            spans = (window.width - 1) * reach.dilation + 1 if window.width else 0
            low[dim], more = max(phase), max(phase) - min(phase)
            tile[dim] += more
            high[dim] = tile[dim] - low[dim] - spans
            if more:
                cuts.append((line, tuple(max(phase) - p for p in phase)))
        return PadPlan(
            split,
            tuple(c for halo in halos for c in halo.collectives),
            halos=tuple(halos),
            low=tuple(low),
            high=tuple(high),
            interior=self.interior,
            shape=tuple(tile),
            done=not any((*low, *high, *self.interior)),
            cuts=tuple(cuts),
        )

    def emit(self, plan: PadPlan, site: Site) -> Sequence[Any]:
        op, out = site.op, site.op.results[0]
        value, fill = op.operands
        with site.before():
            for halo in plan.halos:
                value = extend(site, value, halo, fill)
        if plan.done:
            site.discard()
            return [value]
        op.operands[0] = value
        for name, row in zip(PADDING, (plan.low, plan.high, plan.interior), strict=True):
            op.attributes[name] = i64_array(row)
        out.set_type(retype(out.type, plan.shape))
        with site.after():
            for line, starts in plan.cuts:
                out = cut_at(out, line.dim, Along(site, line).number(starts), plan.split.result_tile(0)[line.dim])
        return [out]


def pad(op: Any) -> OpModel[Any]:
    low, high, interior = (ints(op.attributes[name]) for name in PADDING)
    element = str(op.results[0].type.element_type)
    return _pad(shape_of(op.operands[0]), shape_of(op.results[0]), low, high, interior, element)


@lru_cache(maxsize=4096)
def _pad(source: Shape, target: Shape, low: Shape, high: Shape, interior: Shape, element: str) -> PadOp:
    build = RuleBuilder([len(source), 0], [len(target)])
    reaches = []
    for dim, (n, m) in enumerate(zip(source, target, strict=True)):
        build.along(dim, windowed_factor(build, n, m))
        if low[dim] or high[dim] or interior[dim]:
            reaches.append(Reach(0, dim, n, m, -low[dim], dilation=interior[dim] + 1))
    return PadOp(build.build(Priority.PASS_THROUGH), low, high, interior, tuple(reaches), element)


# ---------------------------------------------------------------- reverse


@dataclass(frozen=True, kw_only=True)
class ReversePlan(LocalPlan):
    """The plan of a reverse: devices reverse their tiles, then exchange them in ``rounds``, dimension by dimension."""

    rounds: tuple[Rounds, ...]


@dataclass(frozen=True, eq=False)
class ReverseOp(OpModel[ReversePlan]):
    rule: Rule
    turned: Shape  # dimensions
    element: str

    def plan(self, split: Split) -> ReversePlan:
        shape, tile, rounds = split.result_shapes[0], split.result_tile(0), []
        for dim in self.turned:
            line = Line.of(split, dim, split.results[0][dim], "a reversal across tiles")
            if line.axes:
                size = shape[dim]
                exchange = plan_exchange((reversed_tiles(size, line.count),), tile_window(size, line.count))
                rounds.append(plan_rounds(line, tile, element_type(self.element), exchange, tile[dim]))
        return ReversePlan(split, tuple(c for one in rounds for c in one.collectives), rounds=tuple(rounds))

    def emit(self, plan: ReversePlan, site: Site) -> Sequence[Any]:
        (out,) = site.keep()
        with site.after():
            for rounds in plan.rounds:
                out = exchange_rounds(site, out, rounds)
        return [out]


def reverse(op: Any) -> OpModel[Any]:
    dimensions = tuple(sorted(ints(op.attributes["dimensions"])))
    return _reverse(shape_of(op.operands[0]), dimensions, str(op.results[0].type.element_type))


@lru_cache(maxsize=4096)
def _reverse(shape: Shape, turned: Shape, element: str) -> ReverseOp:
    build = RuleBuilder([len(shape)], [len(shape)])
    for dim, size in enumerate(shape):
        build.mapped(size, (0, dim), (0, dim))
    return ReverseOp(build.build(Priority.PASS_THROUGH), turned, element)


define(
    "stablehlo.slice",
    slice_,
    note="every dimension; along a sliced dimension, each tile receives the elements that it lacks from other tiles",
    sends="halos",
)
define("stablehlo.pad", pad, note="every dimension, including those with negative or interior padding", sends="halos")
define(
    "stablehlo.reverse",
    reverse,
    note="every dimension, including the reversed ones",
    sends="tiles that move between devices",
)
