"""scatter: window, batch and indexed dimensions are parallel; a split of the updates leaves partial results.

Cases, for each dimension of the operand (and of the result, which is split alike):

1. a batching dimension: the one of the indices and of the updates that goes with it;
2. written whole (window size = size): a window dimension of the updates; only an index of 0 is in bounds;
3. indexed, or inserted: absent from the updates. Each device shifts the positions into its tile, and what falls outside
   is dropped, as scatter drops what is out of bounds. A window of more than one element may straddle tiles, so
   the tile is padded by it on both sides, and cut out again after;
4. indexed by a column that merely counts (``counting``): it goes with the dimension of the indices that is counted, as
   a batching dimension does; positions are shifted as in 3;
5. cut short without being indexed: only [0, window size) is ever written; needed whole.

The remaining dimensions of indices and updates say which update: split, each device applies its own, and the results
are partial. Then the operand counts once: all parts but the first start from the combiner's identity. Only for
combiners that have one. Any other body (one that overwrites) takes the updates in their order, whole on each device
that holds what they change: parts of them have no order among devices. (Where indices are unique order does not matter,
but then the updates are no larger than the operand, and gathering them receives less than joining two partial operands
and a mask of what was written.) Updates in the padding are sent out of bounds.

A single update is a dynamic_slice and a dynamic_update_slice to XLA, which folds that slice with the one that brings a
tile to a device, at the sum of the positions, and reads elsewhere where the position is out of bounds (``indexing``
tells more). A barrier between the two keeps them apart.

Out of bounds: a window that is not wholly inside is dropped whole, as XLA does it (JAX's modes are built on that). The
specification drops its outside elements only; with windows of one element the two agree.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import i64_array, operation, retype, shape_of, splat_text
from shardpass.ops.families.gather import counted, padded
from shardpass.ops.indexing.dimension_numbers import IndexedDims
from shardpass.ops.local import Local
from shardpass.ops.reducers import can_combine, combiner_of
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import identity_text

NOWHERE = -(2**30)  # a position out of bounds, with any window, of any tile


def partial_combiner(op: Any) -> str:
    """The reduction that joins partial results of the update computation; "" where there is none."""
    if len(op.results) != 1:
        return ""
    element = op.results[0].type.element_type
    name = "add" if _subtracts(op) else combiner_of(op)
    if not can_combine(name, str(element)) or identity_text(name, element) is None:
        return ""
    return name


def _subtracts(op: Any) -> bool:
    """Whether the computation is old - update: from the identity it leaves minus the update, and parts are added."""
    block = op.regions[0].blocks[0]
    body = [operation(inner) for inner in block.operations]
    return (
        len(body) == 2
        and body[0].name == "stablehlo.subtract"
        and list(body[0].operands) == list(block.arguments)
        and list(body[1].operands) == list(body[0].results)
    )


def scatter(op: Any) -> Rule | None:
    dims, n = IndexedDims.of_scatter(op), len(op.results)
    shapes = [shape_of(v) for v in op.operands]
    operand, indices, updates = shapes[0], shapes[n], shapes[n + 1]
    combiner = partial_combiner(op) if dims.index_map else ""
    build = RuleBuilder([len(s) for s in shapes], [len(operand)] * n)

    def everywhere(dim: int, factor: int) -> None:
        for index in range(n):
            build.operand(index, dim, factor)
            build.result(index, dim, factor)

    def on_updates(dim: int, factor: int) -> None:
        for index in range(n):
            build.operand(n + 1 + index, dim, factor)

    walked, paired = dims.walked(len(operand)), dims.paired()
    paired |= counted(op.operands[n], dims.vector_dim, dims.index_map, [*paired], operand, set(dims.dropped))
    for source, target in dims.index_walks(len(indices), len(updates)).items():
        free = source in paired
        kind = Kind.PARALLEL if free else Kind.REDUCTION if combiner else Kind.REPLICATED
        factor = build.factor(indices[source], kind)
        build.operand(n, source, factor)
        on_updates(target, factor)
        if free:
            everywhere(paired[source], factor)
    if dims.vector_dim < len(indices):
        build.operand(n, dims.vector_dim, build.factor(indices[dims.vector_dim], Kind.REPLICATED))
    for dim, size in enumerate(operand):
        if dim in paired.values():
            continue
        width = updates[walked[dim]] if dim in walked else 1
        whole = dim in walked and width == size
        free = whole or (dim in dims.index_map and size <= at.LARGEST)
        factor = build.factor(size, Kind.PARALLEL if free else Kind.REPLICATED)
        everywhere(dim, factor)
        if dim in walked:
            on_updates(walked[dim], factor if whole else build.factor(width, Kind.REPLICATED))
    return build.build(Priority.CONTRACTION, combiner, masks=True)


def localize_scatter(local: Local) -> list[Any] | None:
    """See the cases above. Where no index needs a change and nothing is partial the op stays as it is."""
    op, dims = local.op, IndexedDims.of_scatter(local.op)
    split, n = local.operand_dims[0], len(op.results)
    parts = tuple(a for f, axes in sorted(local.factors.items()) for a in axes if _is_partial(local, f))
    if parts:
        with local.before():
            op.operands[0] = _counted_once(local, parts)
    if prod(d for place, d in enumerate(local.operand_tile(n)) if place != dims.vector_dim) == 1:
        with local.before():
            for index in range(n):
                op.operands[index] = hlo.optimization_barrier([op.operands[index]])
    moved = [c for c, d in enumerate(dims.index_map) if split[d]]
    ragged = _ragged_rows(local, dims)
    if not moved and not ragged:
        return None
    shape = local.operand_shapes[0]
    walked = dims.walked(len(shape))
    width = {d: local.operand_shapes[n + 1][walked[d]] if d in walked else 1 for d in dims.index_map}
    margins = [width[d] - 1 if d in width and split[d] and width[d] < shape[d] else 0 for d in range(len(shape))]
    with local.before():
        columns = _local_positions(local, dims, width, ragged)
        op.operands[n] = at.joined(columns, dims.vector_dim)
        if any(margins):
            for index in range(n):
                zero = at.nothing_text(op.operands[index].type.element_type)
                op.operands[index] = padded(op.operands[index], margins, zero)
    op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    kinds = [retype(r.type, local.tile(i)) for i, r in enumerate(op.results)]
    for index in range(n):
        op.results[index].set_type(op.operands[index].type)
    if not any(margins):
        return list(op.results)
    with local.after():
        return [_cut_out(r, kind, margins) for r, kind in zip(op.results, kinds, strict=True)]


def _is_partial(local: Local, factor: int) -> bool:
    return local.rule.factors[factor].kind is Kind.REDUCTION


def _counted_once(local: Local, parts: Axes) -> Any:
    """The operand on the devices that hold part 0 of the updates, the combiner's identity on all others.

    As it is where counting it again changes nothing: for a combiner that leaves x and x at x, and for zeros.
    """
    value, combiner = local.op.operands[0], local.rule.combiner
    element = value.type.element_type
    if combiner in ("maximum", "minimum", "and", "or") or (combiner == "add" and _is_zero(value)):
        return value
    text = at.nothing_text(element) if combiner == "add" else identity_text(combiner, element)
    first = hlo.compare(
        device_value(local.mesh.index(parts)), at.splat(at.i32(), 0), hlo.ComparisonDirectionAttr.get("EQ")
    )
    return hlo.select(first, value, at.splat(value.type, str(text)))


def _is_zero(value: Any) -> bool:
    """Whether ``value`` is known to be 0 everywhere: a constant, or one that is broadcast."""
    op = None if isinstance(value.owner, ir.Block) else operation(value.owner)
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        return _is_zero(op.operands[0])
    text = splat_text(op) if op is not None and op.name == "stablehlo.constant" else None
    return re.fullmatch(r"-?0(\.0*(e[+-]?0+)?)?", text or "") is not None


def _ragged_rows(local: Local, dims: IndexedDims) -> list[tuple[int, int]]:
    """(dimension of the indices, its place without the vector's dimension) of uneven splits whose padding would count.

    Padding along a batching dimension writes to padding.
    """
    n = len(local.op.results)
    sources = [d for d in range(len(local.operand_shapes[n])) if d != dims.vector_dim]
    return [
        (d, place)
        for place, d in enumerate(sources)
        if local.operand_dims[n][d]
        and d not in dims.indices_batching
        and local.operand_shapes[n][d] % local.mesh.count(local.operand_dims[n][d])
    ]


def _local_positions(
    local: Local, dims: IndexedDims, width: dict[int, int], ragged: list[tuple[int, int]]
) -> list[Any]:
    """The columns of the indices for this device's tile; NOWHERE for what is out of bounds of the whole operand."""
    n, shape, tile, split = len(local.op.results), local.operand_shapes[0], local.operand_tile(0), local.operand_dims[0]
    columns = at.components(local.op.operands[n], dims.vector_dim)
    real = None
    for source, place in ragged:
        rows = local.operand_shapes[n][source]
        kind = at.i32(shape_of(columns[0]))
        start = local.start(local.operand_dims[n][source], local.operand_tile(n)[source])
        left = at.shifted(hlo.iota(kind, place), hlo.subtract(at.splat(at.i32(), rows), start))
        inside = at.compare("LT", left, at.splat(kind, 0))
        real = inside if real is None else hlo.and_(real, inside)
    for c, dim in enumerate(dims.index_map):
        kept = at.in_range(columns[c], shape[dim] - width[dim])
        valid = at.compare("EQ", kept, columns[c])
        if real is not None:
            valid = hlo.and_(valid, real)
        position = at.as_i32(kept)
        if split[dim] and width[dim] < shape[dim]:
            position = at.shifted(position, local.start(split[dim], tile[dim]))
            if width[dim] > 1:
                position = hlo.add(position, at.splat(position.type, width[dim] - 1))
        columns[c] = hlo.select(valid, position, at.splat(position.type, NOWHERE))
    return columns


def _cut_out(value: Any, kind: Any, margins: list[int]) -> Any:
    high = [m + size for m, size in zip(margins, kind.shape, strict=True)]
    return hlo.slice(value, i64_array(margins), i64_array(high), i64_array([1] * len(margins)))


define(
    "stablehlo.scatter",
    "scatter",
    scatter,
    localize_scatter,
    note="batch and window dimensions; scattered dimensions, with each device applying the updates that fall into its "
    "tile; dimensions of the updates if the body is add, multiply, minimum or maximum (partial results); with any "
    "other body, such as one that overwrites, every device needs all updates in their order",
)
