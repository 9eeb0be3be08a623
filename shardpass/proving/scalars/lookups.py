"""Gathers and scatters: at known positions elements move; at unknown positions they become choices by the indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints
from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.contraction import reducer_of
from shardpass.proving.scalars.constants import identity
from shardpass.proving.scalars.integers import at_most, compared, selected
from shardpass.proving.scalars.lists import ragged
from shardpass.proving.scalars.moves import positioned
from shardpass.proving.scalars.table import TERM
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value


def _vectors(indices: Value, dim: int, device: int) -> tuple[Ints, tuple[int, ...]]:
    """Return the index vectors of a device, [positions, components], and the shape of the positions."""
    ids = indices.ids[device]
    ids = ids[..., None] if dim == indices.rank else np.moveaxis(ids, dim, -1)
    return ids.reshape(-1, ids.shape[-1]), ids.shape[:-1]


def gather(site: ScalarSite) -> list[Value]:
    operand, indices = site.operands
    numbers = hlo.GatherDimensionNumbers(site.op.attributes["dimension_numbers"])
    sizes, shape = ints(site.op.attributes["slice_sizes"]), site.shape()
    offset, rows = list(numbers.offset_dims), list(numbers.start_index_map)
    batching = list(numbers.operand_batching_dims)
    dropped = sorted([*numbers.collapsed_slice_dims, *batching])
    along = list(numbers.start_indices_batching_dims)
    vector = numbers.index_vector_dim
    result = []
    for device in range(site.devices):
        vectors, places = _vectors(indices, vector, device)
        source = operand.ids[device]
        windows = []
        for at, place in zip(vectors, np.ndindex(*places), strict=True):
            start = np.array(
                [
                    _clamped(site, indices.element, n, operand.shape[d] - sizes[d])
                    for n, d in zip(at.tolist(), rows, strict=True)
                ],
                np.int64,
            )
            fixed = {b: place[d - (d > vector)] for b, d in zip(batching, along, strict=True)}

            def cut(where: Sequence[int], fixed: dict[int, int] = fixed, source: Ints = source) -> Ints:
                first = [fixed.get(d, 0) for d in range(operand.rank)]
                for d, s in zip(rows, where, strict=True):
                    first[d] = s
                part = source[tuple(slice(f, f + n) for f, n in zip(first, sizes, strict=True))]
                return part.reshape([n for d, n in enumerate(sizes) if d not in dropped])

            site.table.spend(TERM + prod(sizes))
            windows.append(positioned(site.table, start, cut))
        window = [n for d, n in enumerate(sizes) if d not in dropped]
        ids = np.stack(windows).reshape(*places, *window) if windows else np.zeros((*places, *window), np.int64)
        batch = [d for d in range(len(shape)) if d not in offset]
        result.append(ids.transpose(np.argsort([*batch, *offset])) if ids.ndim else ids)
    return [site.result(np.stack(result))]


def _clamped(site: ScalarSite, element: str, number: int, most: int) -> int:
    result = at_most(site.table, element, number, most)
    if result < 0:
        raise Unknown("its indices are of a type without bounds")
    return result


def index_select(site: ScalarSite) -> list[Value]:
    """Select along one dimension the rows that the clamped indices name; the batch dimensions are in front."""
    operand, indices = site.operands
    dim, shared = (int(site.op.attributes[name].value) for name in ("dim", "batch_dims"))
    results = []
    for device in range(site.devices):
        rows = []
        for batch in np.ndindex(*operand.shape[:shared]):
            source, along = operand.ids[device][batch], dim - shared
            places = indices.ids[device][batch]
            windows = []
            for number in places.ravel().tolist():
                start = np.array([_clamped(site, indices.element, number, source.shape[along] - 1)], np.int64)
                site.table.spend(TERM + source.size)
                windows.append(positioned(site.table, start, _rows_of(source, along)))
            front, back = source.shape[:along], source.shape[along + 1 :]
            stacked = np.stack(windows).reshape(*places.shape, *front, *back)
            order = [*range(places.ndim, places.ndim + len(front)), *range(places.ndim)]
            rows.append(stacked.transpose(*order, *range(places.ndim + len(front), stacked.ndim)))
        results.append(np.stack(rows).reshape(site.shape()))
    return [site.result(np.stack(results))]


def _rows_of(source: Ints, dim: int) -> Callable[[tuple[int, ...]], Ints]:
    return lambda at: np.take(source, at[0], dim)


def _body(site: ScalarSite) -> str | None:
    """Return the reducer of a scatter; None where an update overwrites the operand."""
    block = site.op.regions[0].blocks[0]
    *inner, end = [operation(op) for op in block.operations]
    if not inner and list(end.operands) == [block.arguments[1]]:
        return None
    return reducer_of(site.op)


def scatter(site: ScalarSite) -> list[Value]:
    if len(site.operands) != 3:
        raise Unknown("it scatters several operands at once")
    name = _body(site)
    operand, indices, updates = site.operands
    result = []
    for device in range(site.devices):
        base = operand.ids[device].ravel()
        if name is None:
            flat = base.tolist()
            for row, update, at, inside in _writes(site, operand, indices, updates, device):
                flat[at] = update if row is None else selected(site.table, inside, update, flat[at])
            ids = np.array(flat, np.int64)
        else:
            neutral = identity(site.table, name, operand.element)
            to, more = list(range(len(base))), base.tolist()
            for row, update, at, inside in _writes(site, operand, indices, updates, device):
                to.append(at)
                more.append(update if row is None else selected(site.table, inside, update, neutral))
            ids = ragged(site.table, name, operand.element, np.array(to), np.array(more, np.int64), len(base))
        result.append(ids.reshape(operand.shape))
    return [site.result(np.stack(result))]


def _writes(
    site: ScalarSite, operand: Value, indices: Value, updates: Value, device: int
) -> Iterator[tuple[int | None, int, int, int]]:
    """Yield (None where the place is known, the update, the place, the condition) for each update, in their order."""
    table = site.table
    numbers = hlo.ScatterDimensionNumbers(site.op.attributes["scatter_dimension_numbers"])
    windows, inserted = list(numbers.update_window_dims), list(numbers.inserted_window_dims)
    batching, rows = list(numbers.input_batching_dims), list(numbers.scattered_dims_to_operand_dims)
    along, vector = list(numbers.scatter_indices_batching_dims), numbers.index_vector_dim
    vectors, places = _vectors(indices, vector, device)
    batch = [d for d in range(updates.rank) if d not in windows]
    own = [d for d in range(operand.rank) if d not in inserted and d not in batching]
    values = updates.ids[device].transpose([*batch, *windows]).reshape(len(vectors), -1)
    window = [updates.shape[d] for d in windows]
    strides = [prod(operand.shape[d + 1 :]) for d in range(operand.rank)]
    for at, place, row in zip(vectors, np.ndindex(*places), values, strict=True):
        fixed = {b: place[d - (d > vector)] for b, d in zip(batching, along, strict=True)}
        for inner, update in zip(np.ndindex(*window), row.tolist(), strict=True):
            first = [fixed.get(d, 0) for d in range(operand.rank)]
            for d, k in zip(own, inner, strict=True):
                first[d] += k
            table.spend(TERM)
            for offset, condition in _hits(site, indices.element, at.tolist(), [first[d] for d in rows],
                                           [operand.shape[d] for d in rows]):  # fmt: skip
                index = list(first)
                for d, k in zip(rows, offset, strict=True):
                    index[d] = k
                to = sum(i * s for i, s in zip(index, strides, strict=True))
                yield (None if condition < 0 else 0), update, to, condition


def _hits(
    site: ScalarSite, element: str, at: Sequence[int], shift: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the positions that an update may reach, each with its condition; -1: always."""
    table = site.table
    if not at:
        yield (), -1
        return
    head, *rest = at
    if table.is_known(head):
        options = [(table.number(head) + shift[0], -1)]
        options = [(k, c) for k, c in options if 0 <= k < sizes[0]]
    else:
        options = []
        for k in range(sizes[0]):
            condition = compared(table, "EQ", element, head, table.integer(k - shift[0]))
            if condition is None:
                raise Unknown("its indices are of a type without bounds")
            if table.is_known(condition):
                if table.number(condition):
                    options.append((k, -1))
                continue
            options.append((k, condition))
    for k, condition in options:
        for others, more in _hits(site, element, rest, shift[1:], sizes[1:]):
            both = condition if more < 0 else more if condition < 0 else _both(site, condition, more)
            yield (k, *others), both


def _both(site: ScalarSite, one: int, other: int) -> int:
    return selected(site.table, one, other, site.table.integer(0))


RULES: dict[str, ScalarRule] = {
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
    "stablehlo.torch_index_select": index_select,
}
