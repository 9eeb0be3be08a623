"""slice, pad, reverse: a result's element is an operand's element at another index of the dimension.

A dimension that changes is one factor of operand and result, each in tiles of its own; what a result's tile needs of
other tiles comes by the exchange of ``halo``.
"""

from __future__ import annotations

from typing import Any

from shardpass.element_types import element_type
from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ops.halo.reach import HaloRule, Reach, halo_bytes, halo_rule, in_order, windowed_factor
from shardpass.ops.halo.transfers import Exchange, plan_exchange, reversed_tiles, tile_of, tile_window
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.assign import LATENCY_BYTES
from shardpass.ops.splits.factors import Axes, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.boxes import cut, cut_at

# ---------------------------------------------------------------- slice


def slice_(op: Any) -> Rule | None:
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    starts, strides = ints(op.attributes["start_indices"]), ints(op.attributes["strides"])
    build = RuleBuilder([len(source)], [len(target)])
    reaches = []
    for dim, (n, m) in enumerate(zip(source, target, strict=True)):
        factor = windowed_factor(build, n, m)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
        if n != m:
            reaches.append(Reach(0, dim, factor, n, m, starts[dim], strides[dim]))
    return halo_rule(op, build, reaches, Priority.PASS_THROUGH)


def localize_slice(local: Local) -> list[Any] | None:
    """The window of a result's tile is brought, then cut with the same stride."""
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    starts, limits = list(ints(op.attributes["start_indices"])), list(ints(op.attributes["limit_indices"]))
    strides = list(ints(op.attributes["strides"]))
    value = op.operands[0]
    for dim in in_order(rule, 0, local.result_dims[0], local.mesh):
        axes, reach = local.result_dims[0][dim], rule.reach(0, dim)
        if not axes:
            continue
        if reach is not None:
            with local.before():
                value, strides[dim] = _window_of_slice(local, value, reach, axes)
        starts[dim], limits[dim] = 0, shape_of(value)[dim]
    op.operands[0] = value
    for name, row in (("start_indices", starts), ("limit_indices", limits), ("strides", strides)):
        op.attributes[name] = i64_array(row)
    if shape_of(value) != local.tile(0):
        return None
    op.results[0].set_type(value.type)
    return [value]


def _window_of_slice(local: Local, value: Any, reach: Reach, axes: Axes) -> tuple[Any, int]:
    """The elements that the device's part of the slice spans, and the stride that is left to take."""
    halos = Halos(local, reach.dim, axes, "a slice across tiles")
    thin = _thinned(reach, halos.count)
    if thin is not reach:
        value = cut(value, reach.dim, reach.first % reach.step, shape_of(value)[reach.dim], reach.step)
    return halos.extend(value, thin.size, thin.elements(halos.count)[0], None), thin.step


def _thinned(reach: Reach, count: int) -> Reach:
    """``reach`` on what each tile keeps when it takes the stride itself, where all tiles take it alike."""
    if reach.step == 1 or tile_of(reach.size, count) % reach.step:
        return reach
    first, phase = divmod(reach.first, reach.step)
    size = -(-(reach.size - phase) // reach.step)
    # tiles of the thinned dimension are as long as those of the whole one, divided
    if tile_of(size, count) != tile_of(reach.size, count) // reach.step:
        return reach
    return Reach(reach.operand, reach.dim, reach.factor, size, reach.results, first)


# ---------------------------------------------------------------- pad


def pad(op: Any) -> Rule | None:
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    low, interior = ints(op.attributes["edge_padding_low"]), ints(op.attributes["interior_padding"])
    high = ints(op.attributes["edge_padding_high"])
    build = RuleBuilder([len(source), 0], [len(target)])
    reaches = []
    for dim, (n, m) in enumerate(zip(source, target, strict=True)):
        factor = windowed_factor(build, n, m)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
        if low[dim] or high[dim] or interior[dim]:
            reaches.append(Reach(0, dim, factor, n, m, -low[dim], dilation=interior[dim] + 1))
    return halo_rule(op, build, reaches, Priority.PASS_THROUGH)


def localize_pad(local: Local) -> list[Any] | None:
    """The window of a result's tile, the padding value outside of the array; interior padding stays to the op.

    Where tiles begin at different places between two elements, the op pads one step more and the device cuts its part.
    """
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (list(ints(op.attributes[name])) for name in names)
    value, later = op.operands[0], []
    tile = list(local.tile(0))
    for dim in in_order(rule, 0, local.result_dims[0], local.mesh):
        axes, reach = local.result_dims[0][dim], rule.reach(0, dim)
        if not axes or reach is None:
            continue
        halos = Halos(local, dim, axes, "padding across tiles")
        window, phase = reach.elements(halos.count)
        with local.before():
            value = halos.extend(value, reach.size, window, op.operands[1])
        spans = (window.width - 1) * reach.dilation + 1 if window.width else 0
        low[dim] = max(phase)
        tile[dim] = tile[dim] + max(phase) - min(phase)
        high[dim] = tile[dim] - low[dim] - spans
        if max(phase) != min(phase):
            later.append((halos, [max(phase) - p for p in phase]))
    op.operands[0] = value
    for name, row in zip(names, (low, high, interior), strict=True):
        op.attributes[name] = i64_array(row)
    op.results[0].set_type(retype(op.results[0].type, tile))
    out = op.results[0] if any((*low, *high, *interior)) else value
    with local.after():
        for halos, starts in later:
            out = cut_at(out, halos.dim, halos.number(starts), local.tile(0)[halos.dim])
    return [out]


# ---------------------------------------------------------------- reverse


def reverse(op: Any) -> Rule | None:
    shape, turned = shape_of(op.operands[0]), ints(op.attributes["dimensions"])
    build = RuleBuilder([len(shape)], [len(shape)])
    reaches = []
    for dim, size in enumerate(shape):
        factor = build.factor(size)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
        if dim in turned:
            reaches.append(Reach(0, dim, factor, size, size))
    return halo_rule(op, build, reaches, Priority.PASS_THROUGH)


def _turned(size: int, count: int) -> Exchange:
    return plan_exchange((reversed_tiles(size, count),), tile_window(size, count))


def localize_reverse(local: Local) -> list[Any] | None:
    """Every device turns its tile round; then tiles change places."""
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    out = op.results[0]
    split = [(reach, local.result_dims[0][reach.dim]) for reach in rule.reaches]
    if not any(axes for _, axes in split):
        return None
    out.set_type(retype(out.type, local.tile(0)))
    with local.after():
        for reach, axes in split:
            if axes:
                halos = Halos(local, reach.dim, axes, "a reversal across tiles")
                plan = _turned(reach.size, halos.count)
                out = halos.exchange(out, plan, local.tile(0)[reach.dim])
    return [out]


def reverse_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    assert isinstance(rule, HaloRule)
    shape, total = shape_of(op.results[0]), 0
    tile = [tile_of(n, mesh.count(factors.get(dim[0], ()))) for n, dim in zip(shape, rule.results[0], strict=True)]
    for reach in rule.reaches:
        axes = factors.get(reach.factor, ())
        if axes:
            cross = 1
            for dim, n in enumerate(tile):
                cross *= 1 if dim == reach.dim else n
            plan = _turned(reach.size, mesh.count(axes))
            received = element_type(rule.element_types[0]).bytes(plan.received * cross)
            total += received + LATENCY_BYTES * max(0, len(plan.rounds) - 1)
    return total


define(
    "stablehlo.slice",
    "slice_pad_reverse",
    slice_,
    localize_slice,
    halo_bytes,
    note="every dimension; along a sliced dimension, each tile receives the elements that it lacks from other tiles",
)
define(
    "stablehlo.pad",
    "slice_pad_reverse",
    pad,
    localize_pad,
    halo_bytes,
    note="every dimension, including those with negative or interior padding",
)
define(
    "stablehlo.reverse",
    "slice_pad_reverse",
    reverse,
    localize_reverse,
    reverse_bytes,
    note="every dimension, including the reversed ones",
)
