"""select_and_scatter (the gradient of max pooling): windows that cross a tile's border are looked at on both sides.

A dimension along which windows slide is split for operand, source and result alike. A device's results come from every
window that touches its tile: it gets the source of these windows and the operand that they span, scatters into the
whole span, and keeps its tile. A source beyond the array is the sum's identity, so it adds nothing.

Padded dimensions are not split (JAX pads with an op of its own): what stands for padding on a tile must never be
selected, and against the least value of the type itself no value loses every tie. Nor are scatters that do not add:
a window is looked at on two devices, and only zero adds nothing on the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.ir.tensors import ints, operation, retype, shape_of
from shardpass.ops.families.reduce_window import padding_of
from shardpass.ops.halo.reach import HaloRule, Reach, halo_bytes, halo_rule, windowed_factor
from shardpass.ops.halo.transfers import Table, Window, tile_of
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
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
        """The first window of each position; it begins no later than the tile."""
        tile = tile_of(self.size, count)
        starts = (p * tile for p in range(count))
        return tuple(min(-(-(s - self.window + 1) // self.stride), s // self.stride) for s in starts)

    def number(self, count: int) -> int:
        """Windows that a position looks at."""
        tile = tile_of(self.size, count)
        ends = ((p + 1) * tile - 1 for p in range(count))
        return max(e // self.stride - f + 1 for e, f in zip(ends, self.first(count), strict=True))

    def span(self, count: int) -> int:
        """Elements from the first of these windows to the last, and the gap behind it."""
        return (self.number(count) - 1) * self.stride + max(self.window, self.stride)


@dataclass(frozen=True, slots=True)
class TouchingReach(Reach):
    """What an operand of select_and_scatter needs: the windows' sources, or the elements that they span."""

    touching: Touching = Touching(1, 1, 1)

    def elements(self, count: int) -> tuple[Window, Table]:
        about = self.touching
        first, none = about.first(count), (0,) * count
        if self.operand == SOURCE:
            number = about.number(count)
            return Window(first, tuple(f + number for f in first), number), none
        span = about.span(count)
        start = tuple(f * about.stride for f in first)
        return Window(start, tuple(s + span for s in start), span), none


def adds(op: Any) -> bool:
    """Whether the scatter is a sum."""
    block = op.regions[1].blocks[0]
    body = [operation(inner) for inner in block.operations]
    return (
        len(body) == 2
        and body[0].name == "stablehlo.add"
        and list(body[1].operands) == list(body[0].results)
        and set(body[0].operands) == set(block.arguments)
    )


def select_and_scatter(op: Any) -> Rule | None:
    shape, source = shape_of(op.operands[OPERAND]), shape_of(op.operands[SOURCE])
    rank = len(shape)
    windows = ints(op.attributes["window_dimensions"]) if "window_dimensions" in op.attributes else [1] * rank
    strides = ints(op.attributes["window_strides"]) if "window_strides" in op.attributes else [1] * rank
    build = RuleBuilder([rank, rank, 0], [rank])
    reaches = []
    splits = adds(op)
    for dim, (n, m, (low, high)) in enumerate(zip(shape, source, padding_of(op, rank), strict=True)):
        plain = (windows[dim], strides[dim], low, high) == (1, 1, 0, 0)
        kind = Kind.PARALLEL if plain or (splits and not low and not high) else Kind.REPLICATED
        factor = windowed_factor(build, n, m, kind=kind)
        build.operand(OPERAND, dim, factor)
        build.operand(SOURCE, dim, factor)
        build.result(0, dim, factor)
        if not plain and kind is Kind.PARALLEL:
            touching = Touching(n, windows[dim], strides[dim])
            reaches += [TouchingReach(o, dim, factor, k, n, touching=touching) for o, k in ((OPERAND, n), (SOURCE, m))]
    return halo_rule(op, build, reaches, Priority.CONTRACTION)


def localize_select_and_scatter(local: Local) -> list[Any] | None:
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    shape, keeps = list(local.tile(0)), []
    for reach in rule.reaches:
        axes = local.operand_dims[reach.operand][reach.dim]
        if not axes:
            continue
        assert isinstance(reach, TouchingReach)
        halos = Halos(local, reach.dim, axes, "windows across tiles")
        with local.before():
            value = op.operands[reach.operand]
            window = reach.elements(halos.count)[0]
            op.operands[reach.operand] = halos.extend(value, reach.size, window, zeros(value.type.element_type))
        if reach.operand == OPERAND:
            tile = local.tile(0)[reach.dim]
            shape[reach.dim] = window.width
            keeps.append((halos, tile, [p * tile - s for p, s in enumerate(window.start)]))
    if not keeps:
        return None
    out = op.results[0]
    out.set_type(retype(out.type, shape))
    with local.after():
        for halos, tile, starts in keeps:
            out = cut_at(out, halos.dim, halos.number(starts), tile)
    return [out]


define(
    "stablehlo.select_and_scatter",
    "select_and_scatter",
    select_and_scatter,
    localize_select_and_scatter,
    halo_bytes,
    note="every dimension without padding, if the scatter is a sum",
)
