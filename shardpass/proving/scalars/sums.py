"""Reductions, products and windows as lists of the reduced terms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Bools, Ints
from shardpass.proving.rules.contraction import reducer_of
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.rules.windows import padding, window
from shardpass.proving.scalars.bodies import by_body
from shardpass.proving.scalars.constants import identities, zero, zeros
from shardpass.proving.scalars.elementwise import op_of
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.moves import padded
from shardpass.proving.scalars.table import MOST, ManyElements, Scalars, among
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

_ALL_DEFAULT = ("#stablehlo<precision DEFAULT>", "[", "]", ",", " ")


def reduce(site: ScalarSite) -> list[Value]:
    half = len(site.operands) // 2
    dims = sorted(ints(site.op.attributes["dimensions"]))
    kept = [d for d in range(site.operands[0].rank) if d not in dims]
    order = [0, *(d + 1 for d in kept), *(d + 1 for d in dims)]
    shape = tuple(site.operands[0].shape[d] for d in kept)
    rows = [v.ids.transpose(order).reshape(site.devices, *shape, -1) for v in site.operands[:half]]
    return along(site, rows, site.operands[half:])


def along(site: ScalarSite, rows: Sequence[Ints], inits: Sequence[Value]) -> list[Value]:
    """Reduce the last dimension of ``rows`` by the op's body, starting from ``inits``."""
    starts = []
    for row, init in zip(rows, inits, strict=True):
        wide = [1] * (row.ndim - 1)
        starts.append(np.broadcast_to(init.ids.reshape(site.devices, *wide), (*row.shape[:-1], 1)))
    try:
        if len(rows) != 1:
            raise Unknown("of several operands")
        name = reducer_of(site.op)
    except Unknown:
        return [site.result(ids, k) for k, ids in enumerate(by_body(site, rows, starts))]
    return [site.result(reduced(site.table, name, site.element(), np.concatenate([rows[0], starts[0]], axis=-1)))]


# ---------------------------------------------------------------- products


def dot_general(site: ScalarSite) -> list[Value]:
    numbers = hlo.DotDimensionNumbers(site.op.attributes["dot_dimension_numbers"])
    batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    return _dot(site, batch, (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)))


def dot(site: ScalarSite) -> list[Value]:
    """Contract the last dimension of lhs with the first of rhs."""
    return _dot(site, ([], []), ([site.operands[0].rank - 1], [0]))


def _dot(site: ScalarSite, batch: tuple[list[int], list[int]], inner: tuple[list[int], list[int]]) -> list[Value]:
    lhs, rhs = site.operands
    free = [[d for d in range(v.rank) if d not in batch[k] and d not in inner[k]] for k, v in enumerate((lhs, rhs))]
    sizes = [[lhs.shape[d] for d in batch[0]], [lhs.shape[d] for d in free[0]], [rhs.shape[d] for d in free[1]]]
    depth = prod(lhs.shape[d] for d in inner[0])
    b, m, n = (prod(s) for s in sizes)
    columns = []
    for k, (value, size) in enumerate(((lhs, m), (rhs, n))):
        order = [0, *(d + 1 for d in (*batch[k], *free[k], *inner[k]))]
        columns.append(value.ids.transpose(order).reshape(site.devices, b, size, depth))
    return [site.result(contracted(site, columns[0][:, :, :, None], columns[1][:, :, None, :]))]


def contracted(site: ScalarSite, x: Ints, y: Ints) -> Ints:
    """Sum x * y along the last dimension; both are broadcast."""
    lhs, rhs = site.operands[0].element, site.operands[1].element
    element, table = site.element(), site.table
    shape = np.broadcast_shapes(x.shape, y.shape)
    if prod(shape) > MOST:
        raise ManyElements
    if not shape[-1]:
        return np.full(shape[:-1], zero(table, element), np.int64)
    nought = None if is_integer(element) else _is_zero(table, x, lhs) & _is_zero(table, y, rhs)
    x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
    how = _precision(site.op)
    if lhs == rhs == element and not how:
        key = ("stablehlo.multiply", (), element, (lhs, rhs))
        products = op_of(table, "multiply", element, [x, y], key, (lhs, rhs))
    elif lhs == rhs:
        products = table.rows(("product", lhs, rhs, element, how), [np.minimum(x, y), np.maximum(x, y)])
    else:
        products = table.rows(("product", lhs, rhs, element, how), [x, y])
    if nought is not None:
        products = np.where(nought, zero(table, element), products)
        start = np.full((*shape[:-1], 1), zero(table, element), np.int64)
        products = np.concatenate([products, start], axis=-1)
    return reduced(table, "add", element, products)


def _is_zero(table: Scalars, ids: Ints, element: str) -> Bools:
    if is_integer(element):
        return np.asarray(ids == table.integer(0))
    return among(ids, np.union1d(identities(table, "add", element), zeros(table, element)))


def _precision(op: Any) -> tuple[str, ...]:
    result = []
    for name in ("precision_config", "algorithm"):
        if name in op.attributes:
            text = str(op.attributes[name])
            rest = text
            for part in _ALL_DEFAULT:
                rest = rest.replace(part, "")
            result += [text] if rest else []
    return tuple(result)


# ---------------------------------------------------------------- windows


def places(ids: Ints, dims: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
           counts: Sequence[int]) -> Ints:  # fmt: skip
    """Return ``ids`` at each place of a window along ``dims``; positions in the window are the last dimension."""
    result = []
    for offset in product(*(range(n) for n in sizes)):
        at = [slice(None)] * ids.ndim
        for dim, o, stride, step, count in zip(dims, offset, strides, dilations, counts, strict=True):
            first = o * step
            at[dim] = slice(first, first + (count - 1) * stride + 1, stride)
        result.append(ids[tuple(at)])
    return np.stack(result, axis=-1)


def reduce_window(site: ScalarSite) -> list[Value]:
    half = len(site.operands) // 2
    rank, shape, attributes = site.operands[0].rank, site.shape(), site.op.attributes
    sizes, strides = ints(attributes["window_dimensions"]), window(attributes, "window_strides", rank)
    steps = window(attributes, "window_dilations", rank)
    if prod(shape) * prod(sizes) * site.devices > MOST:
        raise ManyElements
    rows = []
    for value, init in zip(site.operands[:half], site.operands[half:], strict=True):
        low, high = zip(*padding(attributes, rank), strict=True) if rank else ((), ())
        inner = [n - 1 for n in window(attributes, "base_dilations", rank)]
        wide = padded(value.ids, init.ids, low, high, inner)
        rows.append(places(wide, range(1, rank + 1), sizes, strides, steps, shape))
    return along(site, rows, site.operands[half:])


def convolution(site: ScalarSite) -> list[Value]:
    lhs, rhs = site.operands
    attributes = site.op.attributes
    numbers = hlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    spatial, kernel = list(numbers.input_spatial_dimensions), list(numbers.kernel_spatial_dimensions)
    outer, rank = list(numbers.output_spatial_dimensions), len(spatial)
    groups, of_batch = (int(attributes[f"{n}_group_count"].value) for n in ("feature", "batch"))
    shape = site.shape()
    nothing = np.full(site.devices, zero(site.table, lhs.element), np.int64)
    order = [numbers.input_batch_dimension, numbers.input_feature_dimension, *spatial]
    x = lhs.ids.transpose(0, *(d + 1 for d in order))
    low, high = zip(*padding(attributes, rank), strict=True) if rank else ((), ())
    inner = [n - 1 for n in window(attributes, "lhs_dilation", rank)]
    x = padded(x, nothing, (0, 0, *low), (0, 0, *high), (0, 0, *inner))
    k = rhs.ids.transpose(
        0, *(d + 1 for d in (numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension, *kernel))
    )
    if "window_reversal" in attributes:
        k = np.flip(k, tuple([3 + i for i, back in enumerate(attributes["window_reversal"]) if bool(back)]))
    sizes, counts = k.shape[3:], [shape[d] for d in outer]
    strides, steps = window(attributes, "window_strides", rank), window(attributes, "rhs_dilation", rank)
    batch, features, own, total = x.shape[1], x.shape[2], k.shape[2], k.shape[1]
    if prod(shape) * own * prod(sizes) * site.devices > MOST:
        raise ManyElements
    x = places(x, range(3, 3 + rank), sizes, strides, steps, counts)  # D, N, C, o.., k
    g = groups * of_batch  # one of the two is 1
    x = x.reshape(site.devices, of_batch, batch // of_batch, groups, features // groups, *counts, -1)
    x = np.moveaxis(x, 3, 2).reshape(site.devices, g, batch // of_batch, features // groups, *counts, prod(sizes))
    x = np.moveaxis(x, 3, -2).reshape(site.devices, g, batch // of_batch, 1, *counts, own * prod(sizes))
    k = k.reshape(site.devices, g, 1, total // g, *([1] * rank), own * prod(sizes))
    sums = contracted(site, x, k)  # D, g, n, f, o..
    sums = np.moveaxis(sums, 2, 1).reshape(site.devices, batch // of_batch, total, *counts)
    to = [numbers.output_batch_dimension, numbers.output_feature_dimension, *outer]
    return [site.result(sums.transpose(0, *(1 + int(d) for d in np.argsort(to))))]


RULES: dict[str, ScalarRule] = {
    "stablehlo.reduce": reduce,
    "stablehlo.dot": dot,
    "stablehlo.dot_general": dot_general,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.convolution": convolution,
}
