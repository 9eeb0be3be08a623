"""reduce_window: pooling by halo, cumulative ops by a scan over the devices.

A dimension is one of

1. untouched (window of 1): one plain factor;
2. slid over: operand and result split alike, each device gets what its results' windows span; beyond the array stands
   the initial value, so a padded dimension is split only where that is the combiner's identity;
3. cumulative (a window as long as the dimension, padded at one side): each device scans its tile, the totals are
   gathered (one element of each tile), and what the tiles before (or after) amount to is joined in.
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
from shardpass.ir.tensors import dense_i64, i64_array, ints, operation, retype, shape_of
from shardpass.ops.halo.reach import HaloRule, Reach, halo_bytes, halo_rule, in_order, windowed_factor
from shardpass.ops.halo.transfers import tile_window
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
from shardpass.ops.reducers import combiner_of, is_identity
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.boxes import cut
from shardpass.ops.tiles.positions import compare, i32, spread


@dataclass(frozen=True, slots=True)
class Sliding:
    """How a window moves along one dimension."""

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
        """Whether a window may hold elements that are not the array's."""
        return bool(self.low or self.high or self.base_dilation > 1)

    def scans(self, size: int) -> bool:
        """Whether result i is the reduction of all elements up to i, or of all from i on."""
        steps = (self.stride, self.base_dilation, self.window_dilation)
        ends = ((size - 1, 0), (0, size - 1))
        return steps == (1, 1, 1) and self.window == size > 1 and (self.low, self.high) in ends


def padding_of(op: Any, count: int) -> list[tuple[int, int]]:
    """(low, high) of each dimension."""
    if "padding" not in op.attributes:
        return [(0, 0)] * count
    table = np.array(ir.DenseIntElementsAttr(op.attributes["padding"]), dtype=np.int64)
    return [(int(low), int(high)) for low, high in np.broadcast_to(table, (count, 2))]


def slidings(op: Any) -> list[Sliding]:
    windows = ints(op.attributes["window_dimensions"])

    def row(name: str) -> Sequence[int]:
        return ints(op.attributes[name]) if name in op.attributes else [1] * len(windows)

    rows = zip(
        windows,
        row("window_strides"),
        padding_of(op, len(windows)),
        row("base_dilations"),
        row("window_dilations"),
        strict=True,
    )
    return [Sliding(w, s, low, high, base, wide) for w, s, (low, high), base, wide in rows]


def peeled(value: Any) -> Any:
    """What a scalar that was only broadcast or reshaped was made of."""
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if op.name not in ("stablehlo.broadcast_in_dim", "stablehlo.reshape") or shape_of(op.operands[0]):
            return value
        value = op.operands[0]
    return value


def scanner(op: Any) -> str:
    """The combiner of a reduction whose scans can be joined over devices; "" for any other."""
    name = combiner_of(op) if len(op.operands) == 2 else ""
    return name if name and is_identity(peeled(op.operands[1]), name) else ""


def reduce_window(op: Any) -> Rule | None:
    count = len(op.operands) // 2
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    build = RuleBuilder([len(source)] * count + [0] * count, [len(target)] * count)
    joins = bool(scanner(op))
    reaches = []
    for dim, (about, n, m) in enumerate(zip(slidings(op), source, target, strict=True)):
        if about.pads and not joins:
            _stuck(build, count, dim, n, m)
            continue
        factor = windowed_factor(build, n, m)
        for index in range(count):
            build.operand(index, dim, factor)
            build.result(index, dim, factor)
            if not about.plain and not (joins and about.scans(n)):
                span = (about.window - 1) * about.window_dilation + 1
                reaches.append(Reach(index, dim, factor, n, m, -about.low, about.stride, span, about.base_dilation))
    return halo_rule(op, build, reaches, Priority.CONTRACTION)


def _stuck(build: RuleBuilder, count: int, dim: int, size: int, results: int) -> None:
    """A padded dimension where the initial value is not known to change nothing.

    The specification takes it for the padding, XLA skips the padding: only a whole window is right by both.
    """
    given, made = build.factor(size, Kind.REPLICATED), build.factor(results, Kind.REPLICATED)
    for index in range(count):
        build.operand(index, dim, given)
        build.result(index, dim, made)


def localize_reduce_window(local: Local) -> list[Any] | None:
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    dims = slidings(op)
    count = len(op.operands) // 2
    padding = [(about.low, about.high) for about in dims]
    dilation, windows = [about.base_dilation for about in dims], [about.window for about in dims]
    scans: list[tuple[Halos, bool, int]] = []
    for dim in in_order(rule, 0, local.operand_dims[0], local.mesh):
        axes = local.operand_dims[0][dim]
        if not axes or dims[dim].plain:
            continue
        if rule.reach(0, dim) is None:
            halos = Halos(local, dim, axes, "totals of a scan across tiles")
            backward, tile = dims[dim].low == 0, local.operand_tile(0)[dim]
            scans.append((halos, backward, dims[dim].window))
            windows[dim] = tile
            padding[dim] = (0, tile - 1) if backward else (tile - 1, 0)
            continue
        halos = Halos(local, dim, axes, "windows across tiles")
        for index in range(count):
            reach = rule.reach(index, dim)
            assert reach is not None
            with local.before():
                value, padding[dim], step = halos.slide(op.operands[index], reach, op.operands[count + index])
            op.operands[index] = value
        dilation[dim] = step
    op.attributes["padding"] = dense_i64(padding)
    op.attributes["base_dilations"] = i64_array(dilation)
    op.attributes["window_dimensions"] = i64_array(windows)
    return _scanned(local, scans) if scans else None


def _scanned(local: Local, scans: Sequence[tuple[Halos, bool, int]]) -> list[Any]:
    """The scans of the tiles, with what the tiles before (or after) them amount to joined in."""
    op, combiner = local.op, combiner_of(local.op)
    initial, out = op.operands[1], op.results[0]
    for halos, backward, size in scans:
        if backward:  # padding lies at the end, where these scans begin
            with local.before():
                value = halos.outside(op.operands[0], size, tile_window(size, halos.count), initial)
            op.operands[0] = value
    out.set_type(retype(out.type, local.tile(0)))
    with local.after():
        for halos, backward, _ in scans:
            tile = shape_of(out)[halos.dim]
            at = 0 if backward else tile - 1
            totals = halos.gather(cut(out, halos.dim, at, at + 1))
            others = _reduced(_others(halos, totals, initial, backward), initial, halos.dim, combiner)
            kept = [d for d in range(len(shape_of(out))) if d != halos.dim]
            before = hlo.broadcast_in_dim(out.type, others, i64_array(kept))
            out = ir.Operation.create(f"stablehlo.{combiner}", results=[out.type], operands=[before, out]).results[0]
    return [out]


def _others(halos: Halos, totals: Any, initial: Any, backward: bool) -> Any:
    """``totals`` (one for each position) with the initial value in place of those that do not precede the device's."""
    shape = shape_of(totals)
    here = spread(halos.number(range(halos.count)), shape)
    matters = compare("GT" if backward else "LT", hlo.iota(i32(shape), halos.dim), here)
    return hlo.select(matters, totals, spread(initial, shape))


def _reduced(value: Any, initial: Any, dim: int, combiner: str) -> Any:
    shape = [n for d, n in enumerate(shape_of(value)) if d != dim]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[retype(value.type, shape)],
        operands=[value, initial],
        attributes={"dimensions": i64_array([dim])},
        regions=1,
    )
    block = op.regions[0].blocks.append(initial.type, initial.type)
    with ir.InsertionPoint(block):
        made = ir.Operation.create(
            f"stablehlo.{combiner}", results=[initial.type], operands=list(block.arguments)
        ).results
        ir.Operation.create("stablehlo.return", operands=list(made))
    return op.results[0]


def reduce_window_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    """Halos, and the totals of scans."""
    assert isinstance(rule, HaloRule)
    total = halo_bytes(op, rule, factors, mesh)
    tile = mesh.tile(rule.shapes[0], unproject(rule, rule.operands[0], rule.shapes[0], factors, mesh.sizes))
    for dim, about in enumerate(slidings(op)):
        axes = factors.get(rule.operands[0][dim][0], ())
        if axes and not about.plain and rule.reach(0, dim) is None:
            cross = prod(n for d, n in enumerate(tile) if d != dim)
            total += (mesh.count(axes) - 1) * element_type(rule.element_types[0]).bytes(cross)
    return total


define(
    "stablehlo.reduce_window",
    "reduce_window",
    reduce_window,
    localize_reduce_window,
    reduce_window_bytes,
    note="every dimension; a padded dimension only if the body is one binary op, such as add, and the initial value is "
    "the identity of that op",
)
