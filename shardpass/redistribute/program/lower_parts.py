"""Builders of the StableHLO ops used in lowering device programs, at the current insertion point and location.

Every collective gets a channel handle of type 1 (between partitions), global device ids where the op has a flag for
them, and two attributes for people: ``shardpass.axes``, the mesh axes it works over, and ``shardpass.cause`` where the
caller knows one. Numbers that differ from device to device are arithmetic on ``partition_id`` where they are a sum of
digits of it, else a constant table (``shardpass.ir.offsets``); each is built once in a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import integer, numbers
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, splat
from shardpass.redistribute.problem.device_arrays import IntArray

DeviceValues = dict[tuple[str, bytes], Any]  # the scalar of a type for a table of one number for each device


@dataclass(slots=True)
class Parts:
    """State shared by the builders of a plan's ops. ``element``: the element type. ``known``: numbers per device
    already built in this block.
    """

    element: Any
    channels: Iterator[int]
    cause: str
    known: DeviceValues

    def type(self, shape: Any) -> Any:
        """Return the tensor type of the plan's elements with this shape."""
        return ir.RankedTensorType.get(list(shape), self.element)

    def channel(self) -> Any:
        return hlo.ChannelHandle.get(next(self.channels), 1)

    def tagged(self, built: Any, axes: tuple[str, ...]) -> Any:
        """Set the descriptive attributes on the collective ``built``, and return its result."""
        built.operation.attributes["shardpass.axes"] = ir.StringAttr.get(",".join(axes))
        if self.cause:
            built.operation.attributes["shardpass.cause"] = ir.StringAttr.get(self.cause)
        return built.operation.results[0]

    def zeros(self, shape: Any) -> Any:
        text = str(self.element)
        zero = "(0.0, 0.0)" if text.startswith("complex") else "0.0" if text[0] in "fb" else "0"
        return splat(self.type(shape), "false" if text == "i1" else zero)

    def pad(self, value: Any, shape: tuple[int, ...]) -> Any:
        have = value.type.shape
        high = [n - m for n, m in zip(shape, have, strict=True)]
        if not any(high):
            return value
        none = [0] * len(high)
        return hlo.pad(value, self.zeros(()), none, high, none)

    def trim(self, value: Any, shape: tuple[int, ...]) -> Any:
        if tuple(value.type.shape) == shape:
            return value
        return hlo.slice(value, [0] * len(shape), list(shape), [1] * len(shape))

    def per_device(self, table: IntArray, kind: Any) -> Any:
        """Build a scalar of type ``kind`` that is ``table[d]`` on device d."""
        key = str(kind), table.tobytes()
        if key not in self.known:
            self.known[key] = device_value(table, kind)
        return self.known[key]

    def starts(self, table: IntArray) -> list[Any]:
        """Build a scalar for each column of ``table``, all of one type."""
        kind = numbers(int(table.max(initial=0)))
        return [self.per_device(np.ascontiguousarray(table[:, i]), kind) for i in range(table.shape[1])]

    def slice(self, value: Any, starts: IntArray, sizes: tuple[int, ...]) -> Any:
        if tuple(value.type.shape) == sizes:
            return value
        return hlo.dynamic_slice(value, self.starts(starts), list(sizes))

    def blocks(self, value: Any, axis: int, count: int) -> list[Any]:
        """Slice ``count`` equal blocks along ``axis``."""
        shape = list(value.type.shape)
        size, ones, out = shape[axis] // count, [1] * len(shape), []
        for block in range(count):
            first, last = [0] * len(shape), list(shape)
            first[axis], last[axis] = block * size, (block + 1) * size
            out.append(hlo.slice(value, first, last, ones))
        return out

    def permute(self, value: Any, source_of: IntArray, axes: tuple[str, ...]) -> Any:
        receivers = np.flatnonzero(source_of >= 0)
        pairs = np.stack([source_of[receivers], receivers], axis=1)
        built = hlo.CollectivePermuteOp(value, dense_i64(pairs), channel_handle=self.channel())
        return self.tagged(built, axes)

    def less(self, left: Any, right: Any) -> Any:
        return hlo.compare(left, right, hlo.ComparisonDirectionAttr.get("LT"))

    def positive(self, table: IntArray) -> Any:
        """Build an i1: whether ``table[d]`` is more than 0 on device d."""
        kind = numbers(int(table.max()))
        return self.less(integer(kind, 0), self.per_device(table, kind))
