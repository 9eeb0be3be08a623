"""Ops that move elements, and those that make them of nothing: the same numbers elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shardpass.ir.tensors import ints
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.choices import picked
from shardpass.proving.scalars.constants import constant, whole_number
from shardpass.proving.scalars.integers import at_most
from shardpass.proving.scalars.table import TERM, Scalars
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value


def same(site: ScalarSite) -> list[Value]:
    return [site.result(value.ids, index) for index, value in enumerate(site.operands)]


def broadcast(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    shape = site.shape()
    dims = ints(site.op.attributes["broadcast_dimensions"])
    wide = [1] * len(shape)
    for size, dim in zip(operand.shape, dims, strict=True):
        wide[dim] = size
    order = np.argsort(dims) if len(dims) else np.array([], int)
    ids = operand.ids.transpose(0, *(1 + order)).reshape(site.devices, *wide)
    return [site.result(np.broadcast_to(ids, (site.devices, *shape)))]


def broadcast_in_front(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    front = len(site.shape()) - operand.rank
    ids = operand.ids.reshape(site.devices, *([1] * front), *operand.shape)
    return [site.result(np.broadcast_to(ids, (site.devices, *site.shape())))]


def transpose(site: ScalarSite) -> list[Value]:
    order = ints(site.op.attributes["permutation"])
    return [site.result(site.operands[0].ids.transpose(0, *(d + 1 for d in order)))]


def slice_(site: ScalarSite) -> list[Value]:
    rows = zip(*(ints(site.op.attributes[n]) for n in ("start_indices", "limit_indices", "strides")), strict=True)
    return [site.result(site.operands[0].ids[(slice(None), *(slice(*row) for row in rows))])]


def reverse(site: ScalarSite) -> list[Value]:
    dims = tuple(d + 1 for d in ints(site.op.attributes["dimensions"]))
    return [site.result(np.flip(site.operands[0].ids, dims))]


def concatenate(site: ScalarSite) -> list[Value]:
    dim = int(site.op.attributes["dimension"].value)
    return [site.result(np.concatenate([v.ids for v in site.operands], axis=dim + 1))]


def pad(site: ScalarSite) -> list[Value]:
    operand, value = site.operands
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, inner = (ints(site.op.attributes[name]) for name in names)
    return [site.result(padded(operand.ids, value.ids, low, high, inner))]


def padded(ids: Ints, value: Ints, low: Sequence[int], high: Sequence[int], inner: Sequence[int]) -> Ints:
    """Pad ``ids`` with ``value``, [devices], around and between elements; negative padding cuts."""
    devices, size = len(ids), ids.shape[1:]
    spread = [max((n - 1) * (k + 1) + 1, 0) for n, k in zip(size, inner, strict=True)]
    shape = [low_ + n + high_ for low_, n, high_ in zip(low, spread, high, strict=True)]
    result = np.empty((devices, *spread), np.int64)
    result[:] = value.reshape(devices, *([1] * len(size)))
    result[(slice(None), *(slice(None, None, k + 1) for k in inner))] = ids
    out = np.empty((devices, *shape), np.int64)
    out[:] = value.reshape(devices, *([1] * len(size)))
    to, of = [slice(None)], [slice(None)]
    for front, n, total in zip(low, spread, shape, strict=True):
        first, last = max(front, 0), min(front + n, total)
        to.append(slice(first, max(last, first)))
        of.append(slice(first - front, max(last, first) - front))
    out[tuple(to)] = result[tuple(of)]
    return out


def starts(site: ScalarSite, indices: Sequence[Value], room: Sequence[int]) -> Ints:
    """Return the clamped positions, [devices, rank], as terms."""
    result = np.zeros((site.devices, len(indices)), np.int64)
    for dim, (index, most) in enumerate(zip(indices, room, strict=True)):
        for device, number in enumerate(index.ids.ravel().tolist()):
            one = site.table.integer(0) if most == 0 else at_most(site.table, index.element, number, most)
            if one < 0:
                raise Unknown("its position is of a type without bounds")
            result[device, dim] = one
    return result


def positioned(table: Scalars, start: Ints, each: Callable[[tuple[int, ...]], Ints]) -> Ints:
    """Apply ``each`` to the positions that ``start``, terms, may have, as choices of its elements."""
    for k, number in enumerate(start.tolist()):
        if table.is_known(number):
            continue

        def fixed(value: int, k: int = k) -> Ints:
            other = start.copy()
            other[k] = table.integer(value)
            result = positioned(table, other, each)
            table.spend(TERM + result.size // 16)
            return result

        options: dict[int, Ints] = {}

        def option(value: int, options: dict[int, Ints] = options) -> Ints:
            if value not in options:
                options[value] = fixed(value).ravel()
            return options[value]

        shape = fixed(_any(table, number)).shape
        count = int(np.prod(shape, dtype=np.int64))
        flat = [picked(table, number, "i32", lambda value: int(option(value)[i])) for i in range(count)]  # noqa: B023
        return np.array(flat, np.int64).reshape(shape)
    return each(tuple(table.values(start).tolist()))


def _any(table: Scalars, number: int) -> int:
    """Return a value that a position may have."""
    result: list[int] = []

    def note(value: int) -> int:
        result.append(value)
        return table.integer(value)

    picked(table, number, "i32", note)
    return result[0]


def dynamic_slice(site: ScalarSite) -> list[Value]:
    operand, *indices = site.operands
    shape = site.shape()
    start = starts(site, indices, [n - k for n, k in zip(operand.shape, shape, strict=True)])

    def cut(device: int) -> Callable[[tuple[int, ...]], Ints]:
        return lambda at: operand.ids[device][tuple(slice(s, s + n) for s, n in zip(at, shape, strict=True))]

    return [site.result(np.stack([positioned(site.table, start[d], cut(d)) for d in range(site.devices)]))]


def dynamic_update_slice(site: ScalarSite) -> list[Value]:
    operand, update, *indices = site.operands
    start = starts(site, indices, [n - k for n, k in zip(operand.shape, update.shape, strict=True)])

    def put(device: int) -> Callable[[tuple[int, ...]], Ints]:
        def at(where: tuple[int, ...]) -> Ints:
            ids: Ints = operand.ids[device].copy()
            ids[tuple(slice(s, s + n) for s, n in zip(where, update.shape, strict=True))] = update.ids[device]
            return ids

        return at

    return [site.result(np.stack([positioned(site.table, start[d], put(d)) for d in range(site.devices)]))]


def constants(site: ScalarSite) -> list[Value]:
    ids = constant(site.table, site.op, site.shape(), site.element())
    return [site.result(np.broadcast_to(ids, (site.devices, *ids.shape)))]


def iota(site: ScalarSite) -> list[Value]:
    shape, element = site.shape(), site.element()
    dim = int(site.op.attributes["iota_dimension"].value)
    if is_integer(element):
        from shardpass.proving.scalars.lists import wrap

        row = site.table.integers(np.array([wrap(i, element) for i in range(shape[dim])], np.int64))
    else:
        numbers = [whole_number(site.table, i, element) for i in range(shape[dim])]
        if any(n is None for n in numbers):
            raise Unknown("it counts to what its type rounds")
        row = np.array(numbers, np.int64)
    wide = [1] * len(shape)
    wide[dim] = shape[dim]
    return [site.result(np.broadcast_to(row.reshape(1, *wide), (site.devices, *shape)))]


def partition_id(site: ScalarSite) -> list[Value]:
    if site.devices == 1:
        raise Unknown("the whole program asks which device it is")
    return [site.result(site.table.integers(np.arange(site.devices, dtype=np.int64)))]


def replica_id(site: ScalarSite) -> list[Value]:
    return [site.result(site.table.integers(np.zeros(site.devices, np.int64)))]


def dimension_size(site: ScalarSite) -> list[Value]:
    size = site.operands[0].shape[int(site.op.attributes["dimension"].value)]
    return [site.result(site.table.integers(np.full(site.devices, size, np.int64)))]


RULES: dict[str, ScalarRule] = {
    "stablehlo.broadcast": broadcast_in_front,
    "stablehlo.broadcast_in_dim": broadcast,
    "stablehlo.transpose": transpose,
    "stablehlo.reshape": same,
    "stablehlo.optimization_barrier": same,
    "mhlo.copy": same,
    "stablehlo.slice": slice_,
    "stablehlo.reverse": reverse,
    "stablehlo.concatenate": concatenate,
    "stablehlo.pad": pad,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.constant": constants,
    "chlo.constant": constants,
    "stablehlo.iota": iota,
    "stablehlo.partition_id": partition_id,
    "stablehlo.replica_id": replica_id,
    "stablehlo.get_dimension_size": dimension_size,
}
