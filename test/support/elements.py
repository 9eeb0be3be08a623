"""Chosen elements of a partitioned module's values on chosen devices: for arrays that fit nowhere.

``Elements(module, arguments).at(value, device, index)`` follows an element back through the ops that it comes from,
with integers that wrap at the width of their type, and computes nothing else. Collectives are followed to the devices
that send. An op over more than ``MOST`` elements is an error: a test looks at such an op's operands instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, operation, shape_of, splat_text

Index = tuple[int, ...]
Argument = Callable[[int, Index], Any]  # of a device and of a place in its tile
MOST = 4096


def wrapped(number: Any, element: Any) -> Any:
    """``number`` as the integer type ``element`` holds it: modulo 2**width; others as they are."""
    if not isinstance(element, ir.IntegerType):
        return number
    if element.width == 1:
        return bool(number)
    low = 0 if element.is_unsigned else -(2 ** (element.width - 1))
    return (int(number) - low) % 2**element.width + low


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": truncated,
    "remainder": lambda a, b: a - b * truncated(a, b),
    "maximum": max,
    "minimum": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


class Elements:
    """``arguments``: of @main, one function each. ``known``: elements of results of ops, where a test has them."""

    def __init__(self, module: Any, arguments: Sequence[Argument], known: dict[Any, Argument] | None = None) -> None:
        self.module = module  # the values are its
        self.main = next(op for op in module.body.operations if str(op.attributes["sym_name"]) == '"main"')
        block = self.main.regions[0].blocks[0]
        self.given = {**dict(zip(block.arguments, arguments, strict=True)), **(known or {})}
        self.memo: dict[Any, Any] = {}
        *_, self.end = [operation(op) for op in block.operations]

    def ops(self, name: str) -> list[Any]:
        """The ops of @main called ``name``."""
        return [op for op in map(operation, self.main.regions[0].blocks[0].operations) if op.name == name]

    def result(self, device: int, index: Index, number: int = 0) -> Any:
        """An element of what @main returns on ``device``."""
        return self.at(self.end.operands[number], device, index)

    def at(self, value: Any, device: int, index: Index = ()) -> Any:
        """The element of ``value`` at ``index`` on ``device``."""
        shape = shape_of(value)
        assert all(0 <= i < n for i, n in zip(index, shape, strict=True)), (shape, index)
        key = (value, device, index)
        if key not in self.memo:
            if value in self.given:
                found = self.given[value](device, index)
            else:
                op = operation(value.owner)
                name = op.name.removeprefix("stablehlo.")
                if name in BINARY:
                    found = BINARY[name](*(self.at(v, device, index) for v in op.operands))
                else:
                    found = getattr(self, f"_{name}")(op, device, index)
            self.memo[key] = wrapped(found, value.type.element_type)
        return self.memo[key]

    def whole(self, value: Any, device: int) -> Iterator[tuple[Index, Any]]:
        """Every element of a small value."""
        shape = shape_of(value)
        assert prod(shape) <= MOST, f"{shape} is too large to be looked at element by element"
        for index in itertools.product(*map(range, shape)):
            yield index, self.at(value, device, index)

    # ---------------------------------------------------------------- elements

    def _constant(self, op: Any, device: int, index: Index) -> Any:
        text, element = splat_text(op), op.results[0].type.element_type
        if text is None:
            return np.array(op.attributes["value"])[index]
        if text in ("true", "false"):
            return text == "true"
        return int(text) if isinstance(element, ir.IntegerType) else float(text)

    def _iota(self, op: Any, device: int, index: Index) -> Any:
        return index[ir.IntegerAttr(op.attributes["iota_dimension"]).value]

    def _partition_id(self, op: Any, device: int, index: Index) -> Any:
        return device

    def _compare(self, op: Any, device: int, index: Index) -> Any:
        said = str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]
        return COMPARE[said](*(self.at(v, device, index) for v in op.operands))

    def _select(self, op: Any, device: int, index: Index) -> Any:
        which, yes, no = op.operands
        return self.at(yes if self.at(which, device, index if shape_of(which) else ()) else no, device, index)

    def _clamp(self, op: Any, device: int, index: Index) -> Any:
        low, value, high = (self.at(v, device, index if shape_of(v) else ()) for v in op.operands)
        return min(max(value, low), high)

    def _convert(self, op: Any, device: int, index: Index) -> Any:
        return self.at(op.operands[0], device, index)

    _optimization_barrier = _convert

    # ---------------------------------------------------------------- places

    def _broadcast_in_dim(self, op: Any, device: int, index: Index) -> Any:
        (value,) = op.operands
        into = ints(op.attributes["broadcast_dimensions"])
        return self.at(
            value, device, tuple(0 if n == 1 else index[d] for d, n in zip(into, shape_of(value), strict=True))
        )

    def _reshape(self, op: Any, device: int, index: Index) -> Any:
        flat, out = 0, []
        for i, n in zip(index, shape_of(op.results[0]), strict=True):
            flat = flat * n + i
        for n in reversed(shape_of(op.operands[0])):
            out.append(flat % n)
            flat //= n
        return self.at(op.operands[0], device, tuple(reversed(out)))

    def _transpose(self, op: Any, device: int, index: Index) -> Any:
        order = ints(op.attributes["permutation"])
        return self.at(op.operands[0], device, tuple(index[order.index(d)] for d in range(len(order))))

    def _reverse(self, op: Any, device: int, index: Index) -> Any:
        turned, shape = ints(op.attributes["dimensions"]), shape_of(op.operands[0])
        return self.at(
            op.operands[0],
            device,
            tuple(n - 1 - i if d in turned else i for d, (i, n) in enumerate(zip(index, shape, strict=True))),
        )

    def _slice(self, op: Any, device: int, index: Index) -> Any:
        starts, strides = ints(op.attributes["start_indices"]), ints(op.attributes["strides"])
        return self.at(op.operands[0], device, tuple(a + i * s for a, i, s in zip(starts, index, strides, strict=True)))

    def _pad(self, op: Any, device: int, index: Index) -> Any:
        value, fill = op.operands
        low, interior = ints(op.attributes["edge_padding_low"]), ints(op.attributes["interior_padding"])
        steps = [divmod(i - a, k + 1) for i, a, k in zip(index, low, interior, strict=True)]
        inside = all(not rest and 0 <= i < n for (i, rest), n in zip(steps, shape_of(value), strict=True))
        return self.at(value, device, tuple(i for i, _ in steps)) if inside else self.at(fill, device)

    def _concatenate(self, op: Any, device: int, index: Index) -> Any:
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        at = index[dim]
        for part in op.operands:
            if at < shape_of(part)[dim]:
                return self.at(part, device, (*index[:dim], at, *index[dim + 1 :]))
            at -= shape_of(part)[dim]
        raise AssertionError(index)

    def _starts(self, positions: Sequence[Any], shape: Index, sizes: Index, device: int) -> list[int]:
        rows = zip(positions, shape, sizes, strict=True)
        return [min(max(self.at(p, device), 0), n - s) for p, n, s in rows]

    def _dynamic_slice(self, op: Any, device: int, index: Index) -> Any:
        value, *positions = op.operands
        starts = self._starts(positions, shape_of(value), shape_of(op.results[0]), device)
        return self.at(value, device, tuple(a + i for a, i in zip(starts, index, strict=True)))

    def _dynamic_update_slice(self, op: Any, device: int, index: Index) -> Any:
        value, update, *positions = op.operands
        sizes = shape_of(update)
        place = tuple(
            i - a for i, a in zip(index, self._starts(positions, shape_of(value), sizes, device), strict=True)
        )
        inside = all(0 <= i < s for i, s in zip(place, sizes, strict=True))
        return self.at(update, device, place) if inside else self.at(value, device, index)

    def _position(self, indices: Any, vector_dim: int, batch: Index, device: int) -> list[int]:
        """The index vector at ``batch``."""
        shape = shape_of(indices)
        if vector_dim == len(shape):
            return [self.at(indices, device, batch)]
        return [
            self.at(indices, device, (*batch[:vector_dim], c, *batch[vector_dim:])) for c in range(shape[vector_dim])
        ]

    def _gather(self, op: Any, device: int, index: Index) -> Any:
        """Without batching dimensions."""
        value, indices = op.operands
        said = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
        sizes, offsets = ints(op.attributes["slice_sizes"]), ints(said.offset_dims)
        batch = tuple(i for d, i in enumerate(index) if d not in offsets)
        position = [0] * len(sizes)
        for dim, p in zip(
            ints(said.start_index_map), self._position(indices, said.index_vector_dim, batch, device), strict=True
        ):
            position[dim] = min(max(p, 0), shape_of(value)[dim] - sizes[dim])
        kept = [d for d in range(len(sizes)) if d not in ints(said.collapsed_slice_dims)]
        for dim, d in zip(kept, offsets, strict=True):
            position[dim] += index[d]
        return self.at(value, device, tuple(position))

    def _scatter(self, op: Any, device: int, index: Index) -> Any:
        """Of one operand without batching dimensions; a window that is not wholly inside is dropped, as XLA does."""
        value, indices, updates = op.operands
        said = hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        windows, shape = ints(said.update_window_dims), shape_of(value)
        kept = [d for d in range(len(shape)) if d not in ints(said.inserted_window_dims)]
        found = self.at(value, device, index)
        for place in itertools.product(*map(range, shape_of(updates))):
            batch = tuple(i for d, i in enumerate(place) if d not in windows)
            first, size = [0] * len(shape), [1] * len(shape)
            for dim, p in zip(
                ints(said.scattered_dims_to_operand_dims),
                self._position(indices, said.index_vector_dim, batch, device),
                strict=True,
            ):
                first[dim] = p
            for dim, d in zip(kept, windows, strict=True):
                size[dim] = shape_of(updates)[d]
            if any(p < 0 or p + s > n for p, s, n in zip(first, size, shape, strict=True)):
                continue
            for dim, d in zip(kept, windows, strict=True):
                first[dim] += place[d]
            if tuple(first) == index:
                found = self._joined(op, found, self.at(updates, device, place))
        return found

    # ---------------------------------------------------------------- sums

    def _joined(self, op: Any, a: Any, b: Any) -> Any:
        """The body of ``op``, of one op or none, of two scalars."""
        block = op.regions[0].blocks[0]
        values = dict(zip(block.arguments, (a, b), strict=True))
        *body, end = [operation(inner) for inner in block.operations]
        for inner in body:
            made = BINARY[inner.name.removeprefix("stablehlo.")](*(values[v] for v in inner.operands))
            values[inner.results[0]] = wrapped(made, inner.results[0].type.element_type)
        return values[end.operands[0]]

    def _reduce(self, op: Any, device: int, index: Index) -> Any:
        value, init = op.operands
        gone, shape, left = ints(op.attributes["dimensions"]), shape_of(value), iter(index)
        ranges = [range(n) if d in gone else [next(left)] for d, n in enumerate(shape)]
        assert prod(map(len, ranges)) <= MOST, f"a reduction of {shape} is too large"
        found = self.at(init, device)
        for place in itertools.product(*ranges):
            found = self._joined(op, found, self.at(value, device, place))
        return found

    def _reduce_window(self, op: Any, device: int, index: Index) -> Any:
        value, init = op.operands
        said = op.attributes
        rank, sizes = len(index), ints(op.attributes["window_dimensions"])
        strides = ints(said["window_strides"]) if "window_strides" in said else (1,) * rank
        low = [int(row[0]) for row in np.array(said["padding"])] if "padding" in said else [0] * rank
        found = self.at(init, device)
        for step in itertools.product(*map(range, sizes)):
            place = tuple(i * s + k - a for i, s, k, a in zip(index, strides, step, low, strict=True))
            if all(0 <= i < n for i, n in zip(place, shape_of(value), strict=True)):
                found = self._joined(op, found, self.at(value, device, place))
        return found

    def _dot_general(self, op: Any, device: int, index: Index) -> Any:
        """[m, k] by [k, n]."""
        left, right = op.operands
        pairs = range(shape_of(right)[0])
        return sum(self.at(left, device, (index[0], k)) * self.at(right, device, (k, index[1])) for k in pairs)

    def _convolution(self, op: Any, device: int, index: Index) -> Any:
        """[b, x, f] by [x, i, o] to [b, x, f], not dilated."""
        value, kernel = op.operands
        low, stride = int(np.array(op.attributes["padding"])[0][0]), (*ints(op.attributes["window_strides"]), 1)[0]
        width, features, _ = shape_of(kernel)
        found = 0
        for k, i in itertools.product(range(width), range(features)):
            x = index[1] * stride + k - low
            if 0 <= x < shape_of(value)[1]:
                found += self.at(value, device, (index[0], x, i)) * self.at(kernel, device, (k, i, index[2]))
        return found

    # ---------------------------------------------------------------- collectives

    def _group(self, op: Any, device: int) -> tuple[list[int], int]:
        """The devices of the op's group, and which of them ``device`` is."""
        row = next(r for r in np.array(op.attributes["replica_groups"]).tolist() if device in r)
        return row, row.index(device)

    def _all_reduce(self, op: Any, device: int, index: Index) -> Any:
        first, *others = (self.at(op.operands[0], d, index) for d in self._group(op, device)[0])
        for other in others:
            first = self._joined(op, first, other)
        return first

    def _reduce_scatter(self, op: Any, device: int, index: Index) -> Any:
        dim = ir.IntegerAttr(op.attributes["scatter_dimension"]).value
        row, here = self._group(op, device)
        place = (*index[:dim], index[dim] + here * shape_of(op.results[0])[dim], *index[dim + 1 :])
        first, *others = (self.at(op.operands[0], d, place) for d in row)
        for other in others:
            first = self._joined(op, first, other)
        return first

    def _all_gather(self, op: Any, device: int, index: Index) -> Any:
        dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
        which, at = divmod(index[dim], shape_of(op.operands[0])[dim])
        return self.at(op.operands[0], self._group(op, device)[0][which], (*index[:dim], at, *index[dim + 1 :]))

    def _all_to_all(self, op: Any, device: int, index: Index) -> Any:
        split, joined = (ir.IntegerAttr(op.attributes[f"{name}_dimension"]).value for name in ("split", "concat"))
        row, here = self._group(op, device)
        shape, place = list(shape_of(op.operands[0])), list(index)
        shape[split] //= len(row)  # of what goes to one device
        which, place[joined] = divmod(index[joined], shape[joined])
        place[split] += here * shape[split]
        return self.at(op.operands[0], row[which], tuple(place))

    def _collective_permute(self, op: Any, device: int, index: Index) -> Any:
        pairs = {int(to): int(source) for source, to in np.array(op.attributes["source_target_pairs"])}
        return self.at(op.operands[0], pairs[device], index) if device in pairs else 0
