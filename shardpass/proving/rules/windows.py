"""Windows that slide: convolutions and window reductions, as sums over the positions within a window.

    out[n, f, o] = sum over c, k of x[n, c, stride * o + dilation * k] * w[k, c, f]      x padded

In the space of all these dimensions the index of x runs along o and k at once, which a piece can say, and the rest is a
product and a reduction. Padding is a part of x (``relations/extended.py``), so a tile with its halo is a tile of the
padded array.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.extended import dilated, rows_along, widened
from shardpass.proving.relations.pieces import Content, Piece
from shardpass.proving.relations.reducers import Reducer
from shardpass.proving.relations.reshaping import merged, parted
from shardpass.proving.rules import blocks
from shardpass.proving.rules.contraction import contracted, from_start, reduced, reducer_of, without_dims, zero_piece
from shardpass.proving.rules.movement import padded


def window(attributes: Any, name: str, rank: int, neutral: int = 1) -> tuple[int, ...]:
    return ints(attributes[name]) if name in attributes else (neutral,) * rank


def padding(attributes: Any, rank: int) -> list[tuple[int, int]]:
    if "padding" not in attributes:
        return [(0, 0)] * rank
    return [(int(a), int(b)) for a, b in np.array(attributes["padding"]).reshape(-1, 2)]


def around(
    site: Site, operand: Content, value: Content, rows: Sequence[tuple[int, int]], dims: Sequence[int]
) -> list[Piece]:
    """Pad ``operand`` and return pieces that each span all of ``dims``; raise Unknown where no piece does."""
    shape = [n + low + high for n, (low, high) in zip(operand.shape, rows, strict=True)]
    pieces = padded(site, operand, value, [low for low, _ in rows], shape)
    content = Content(tuple(shape), operand.element, tuple(p for p in pieces if p is not None))
    result = rows_along(site.terms, content, dims)
    if result is None:
        raise Unknown("its padded operand is patched of parts that follow no padding of the whole program's")
    return result


def zeros(site: Site, element: str) -> Content:
    lo = np.zeros((site.devices, 0), np.int64)
    piece = zero_piece(site.terms, element, (lo, lo, np.ones(site.devices, bool)))
    return Content((), element, () if piece is None else (piece,))


def convolution(site: Site) -> list[Content]:
    lhs, rhs = site.operands
    attributes = site.op.attributes
    numbers = hlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    spatial = list(numbers.input_spatial_dimensions)
    rank, groups = len(spatial), int(attributes["feature_group_count"].value)
    shape, element = type_of(site.op.results[0])
    if int(attributes["batch_group_count"].value) != 1:
        raise Unknown("its batch has groups")
    if 0 in (*shape, *lhs.shape, *rhs.shape):
        raise Unknown("it has no elements")
    steps = [1] * lhs.rank
    for dim, step in zip(spatial, window(attributes, "lhs_dilation", rank), strict=True):
        steps[dim] = step
    zero = zeros(site, lhs.element)
    apart = dilated(site.terms, lhs, zero.pieces[0].term, steps) if max(steps) > 1 else lhs
    if apart is None:
        raise Unknown("its operand is dilated, and devices know parts of it")
    lhs = apart
    rows = [(0, 0)] * lhs.rank
    for dim, row in zip(spatial, padding(attributes, rank), strict=True):
        if steps[dim] > 1 and all(0 <= n < steps[dim] for n in row):
            lhs = widened(lhs, dim, *row)
        else:
            rows[dim] = row
    batch, feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    kernel_in, kernel_out = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    kernel = list(numbers.kernel_spatial_dimensions)
    outer = [shape[d] for d in numbers.output_spatial_dimensions]
    sizes = [rhs.shape[d] for d in kernel]
    inner_in, inner_out = lhs.shape[feature] // groups, rhs.shape[kernel_out] // groups
    # n, group, f, o.., c, k..
    space = [lhs.shape[batch], groups, inner_out, *outer, inner_in, *sizes]
    strides, dilations = window(attributes, "window_strides", rank), window(attributes, "rhs_dilation", rank)
    xs = []
    for x in around(site, lhs, zero, rows, spatial):
        moves = _slid(x, spatial, strides, dilations, _reversed(attributes, rank), sizes)
        xs += _lhs(site, moves, batch, feature, inner_in, space, rank)
    ys = _rhs(site, rhs, kernel_in, kernel_out, kernel, inner_out, space, rank)
    sums = contracted(site, xs, ys, space, 1 + rank, (lhs.element, rhs.element, element)).pieces
    # group and f become one, and all go where the result has them
    joined = [m for p in sums for m in merged(site.terms, p, 1, groups, inner_out)]
    order = [0] * len(shape)
    order[numbers.output_batch_dimension], order[numbers.output_feature_dimension] = 0, 1
    for k, dim in enumerate(numbers.output_spatial_dimensions):
        order[dim] = 2 + k
    return [site.result([p.columns(order, shape) for p in joined])]


def _reversed(attributes: Any, rank: int) -> list[bool]:
    if "window_reversal" not in attributes:
        return [False] * rank
    return [bool(x) for x in attributes["window_reversal"]]


def _slid(
    x: Piece, dims: Sequence[int], strides: Sequence[int], dilations: Sequence[int], backwards: Sequence[bool],
    sizes: Sequence[int],
) -> tuple[Piece, Any, Any]:  # fmt: skip
    """Return ``x``, and its columns along the places of windows and along the positions in a window."""
    places = np.stack([x.a[:, d] * s for d, s in zip(dims, strides, strict=True)], axis=1)
    within, b = [], x.b
    for d, step, back, size in zip(dims, dilations, backwards, sizes, strict=True):
        column = x.a[:, d] * step
        if back:
            b = b + column * (size - 1)
            column = -column
        within.append(column)
    return Piece(x.term, x.a, b, x.lo, x.hi, x.on), places, np.stack(within, axis=1)


def _lhs(
    site: Site, moves: tuple[Piece, Any, Any], batch: int, feature: int, inner: int, space: Sequence[int], rank: int
) -> list[Piece]:
    x, places, within = moves
    pair = [batch, feature]
    two = Piece(x.term, x.a[:, pair], x.b, x.lo[:, pair], x.hi[:, pair], x.on)
    result = []
    for p in parted(site.terms, two, 1, inner):
        if p.term != x.term:
            raise Unknown("its features are merged of several dimensions")
        a = np.zeros((len(p.a), len(space)), np.int64)
        lo = np.zeros((len(p.on), len(space)), np.int64)
        hi = np.broadcast_to(np.array(space, np.int64), lo.shape).copy()
        own = [0, 1, 3 + rank]
        a[:, own], lo[:, own], hi[:, own] = p.a, p.lo, p.hi
        a[:, 3 : 3 + rank], a[:, 4 + rank :] = places, within
        result.append(Piece(p.term, a, p.b, lo, hi, p.on))
    return result


def _rhs(
    site: Site, rhs: Content, kernel_in: int, kernel_out: int, kernel: Sequence[int], inner: int, space: Sequence[int],
    rank: int,
) -> list[Piece]:  # fmt: skip
    order = [kernel_out, kernel_in, *kernel]
    sizes = [rhs.shape[d] for d in order]
    pieces = [q for p in rhs.pieces for q in parted(site.terms, p.columns(order, sizes), 0, inner)]
    to = [-1, 0, 1, *([-1] * rank), *range(2, 3 + rank)]
    return [p.columns(to, space) for p in pieces]


def reduce_window(site: Site) -> list[Content]:
    if len(site.operands) != 2:
        raise Unknown("it reduces several operands at once")
    operand, init = site.operands
    attributes = site.op.attributes
    name, rank = reducer_of(site.op), operand.rank
    if any(n != 1 for n in window(attributes, "base_dilations", rank)) or 0 in operand.shape:
        raise Unknown("its operand is dilated")
    shape, element = type_of(site.op.results[0])
    sizes = ints(attributes["window_dimensions"])
    rows = padding(attributes, rank)
    strides, dilations = window(attributes, "window_strides", rank), window(attributes, "window_dilations", rank)
    space = [*shape, *sizes]
    if prod(space) == 0:
        raise Unknown("it has no elements")
    moving = [d for d in range(rank) if sizes[d] != 1 or strides[d] != 1 or rows[d] != (0, 0)]
    pieces = []
    for x in around(site, operand, init, rows, moving):
        piece, places, within = _slid(x, range(rank), strides, dilations, [False] * rank, sizes)
        still = np.array([d not in moving for d in range(rank)])
        lo = np.zeros((site.devices, 2 * rank), np.int64)
        hi = np.broadcast_to(np.array(space, np.int64), lo.shape).copy()
        lo[:, :rank], hi[:, :rank] = np.where(still, x.lo, 0), np.where(still, x.hi, hi[:, :rank])
        pieces.append(Piece(piece.term, np.hstack([places, within]), piece.b, lo, hi, x.on))
    content = Content(tuple(space), element, tuple(pieces))
    dims = list(range(rank, 2 * rank))

    def by(reducer: Reducer) -> Content:
        sums = reduced(site, content, dims, reducer)
        return without_dims(Content((*shape, *(1 for _ in dims)), element, tuple(sums)), dims)

    return [site.result(from_start(site, init, name, by))]


RULES: dict[str, Rule] = {
    "stablehlo.convolution": blocks.either(convolution, blocks.everything),
    "stablehlo.reduce_window": blocks.either(reduce_window, blocks.reduce_window),
}
