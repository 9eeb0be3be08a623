"""Count the memory that a device program needs: the bytes alive together on a device, and the bytes copied locally.

Plans, limits and prices all ask here. Every device runs the same ops on arrays of the same shape, so one walk over the
shapes is enough. State: the shape of the local array, and the accumulator's size in a box exchange.

Alive while an op runs:

1. Its operand and its result; a reshape has one buffer for both. The source tile dies with the op that reads it first.
2. In a box exchange also the accumulator, which rounds write in place; in each round the box that is sent, the box that
   comes, and the part of the accumulator under a mask.
3. In ``ChunkRounds`` the result that is being filled, and the chunks on their way.
4. For an all_gather or reduce_scatter along another than the leading axis the greater array twice: XLA gathers and
   scatters along the leading axis alone, and transposes. f32[8, 8] gathered from 8x2 along axis 1: 2 * 64 elements;
   from 2x8 along axis 0: 16 + 64.

Copied are the bytes written locally: results of slices, transposes and pads, boxes cut out and put in place, and the
pieces of an all_to_all, which XLA cuts and joins. Other bytes that a collective writes are in its price.

O(ops), and O(devices) for a round of a box exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.cost.copies import along
from shardpass.cost.memory import Chain
from shardpass.element_types import ElementType
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.ops import Op

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """The memory that one op needs.

    ``shape``: the shape of the local array after the op. ``scratch``: elements of temporary buffers. ``copied``:
    elements that the op copies. ``in_place``: whether the arrays before and after share one buffer.
    """

    shape: Shape
    scratch: int = 0
    copied: int = 0
    in_place: bool = False


class Memory:
    """Follows a program from a local array of ``shape`` on, and counts bytes.

    ``peak``: most that are alive together; ``tile``: of the greatest local array; ``copied``: written locally.
    """

    def __init__(self, shape: Shape, element: ElementType) -> None:
        self.shape = shape
        self.element = element
        self.accumulator = 0  # elements
        self.seen = 0  # ops of the program
        self.chain = Chain(math.prod(shape))  # of elements
        self.peak = self.tile = element.bytes(math.prod(shape))
        self.copied = 0

    def follow(self, program: Sequence[Op]) -> int:
        """Count the ops of ``program`` since the last call; returns the peak of bytes alive during any of these ops."""
        most = max(map(self.follow_op, program[self.seen :]), default=0)
        self.seen = len(program)
        return most

    def follow_op(self, op: Op) -> int:
        """Count one op; returns the bytes alive during the op."""
        use = self._use(op)
        made = math.prod(use.shape)
        self.shape = use.shape
        self.copied += self.element.bytes(use.copied)
        live = self.element.bytes(self.chain.step(made, use.scratch, use.in_place))
        self.tile = max(self.tile, self.element.bytes(made))
        self.peak = max(self.peak, live)
        return live

    def after(self, first: Memory) -> Memory:
        """Add the count of ``first``, a program that runs earlier, to this count, and return this count."""
        self.seen += first.seen
        self.peak = max(self.peak, first.peak)
        self.tile = max(self.tile, first.tile)
        self.copied += first.copied
        return self

    def _along(self, axis: int, result: Shape) -> Use:
        """Count a gather or scatter along ``axis``; unless ``axis`` is the first, the larger array is transposed."""
        if not along(self.shape, axis):
            return Use(result)
        value, made = math.prod(self.shape), math.prod(result)
        return Use(result, abs(value - made), max(value, made))

    def _use(self, op: Op) -> Use:
        value = self.chain.now
        match op:
            case ops.AsBits():
                return Use(self.shape, in_place=True)
            case ops.Reshape():
                return Use(op.shape, in_place=True)
            case ops.Transpose():
                return Use(tuple(self.shape[a] for a in op.permutation), copied=value)
            case ops.Pad() | ops.Trim() | ops.Zeros():
                return Use(op.shape, copied=math.prod(op.shape))
            case ops.DynamicSlice():
                return Use(op.sizes, copied=math.prod(op.sizes))
            case ops.Permute() | ops.AllReduce():
                return Use(self.shape)
            case ops.AllGather():
                return self._along(op.axis, _scaled(self.shape, op.axis, op.groups.shape[1], 1))
            case ops.ReduceScatter():
                return self._along(op.axis, _scaled(self.shape, op.axis, 1, op.groups.shape[1]))
            case ops.AllToAll():
                group = op.groups.shape[1]
                return Use(_scaled(_scaled(self.shape, op.split, 1, group), op.concat, group, 1), copied=2 * value)
            case ops.ChunkRounds():
                return _chunks(op)
            case ops.Slide():
                return _slid(self.shape, op)
            case ops.BeginBoxExchange():
                self.accumulator = math.prod(op.accumulator)
                is_padded = op.value != self.shape
                padded = math.prod(op.value) if is_padded else 0
                return Use(op.value, self.accumulator, padded + self.accumulator, in_place=not is_padded)
            case ops.BoxRound():
                box = math.prod(op.size)
                return Use(self.shape, self.accumulator + _boxes(op) * box, 2 * box, in_place=True)
            case ops.EndBoxExchange():  # the accumulator is what is left
                self.chain.now, self.accumulator = self.accumulator, 0
                result = math.prod(op.shape)
                is_trimmed = result != self.chain.now
                return Use(op.shape, copied=result if is_trimmed else 0, in_place=not is_trimmed)
        raise TypeError(f"{type(op).__name__} is no op of a device program")


def _slid(shape: Shape, op: ops.Slide) -> Use:
    after = (*shape[: op.axis], op.size, *shape[op.axis + 1 :])
    halo = op.halo * math.prod(shape) // shape[op.axis]
    return Use(after, 2 * halo, math.prod(after) + halo)


def _scaled(shape: Shape, axis: int, times: int, over: int) -> Shape:
    return (*shape[:axis], shape[axis] * times // over, *shape[axis + 1 :])


def _chunks(op: ops.ChunkRounds) -> Use:
    rounds, chunk = len(op.source_of), math.prod(op.chunk)
    result = _scaled(op.placed, op.axis, rounds, 1)
    if op.take is None:  # the value itself, and then the copy of it in the result
        return Use(result, chunk, (2 * rounds - 1) * chunk)
    return Use(result, 2 * chunk, 2 * rounds * chunk)


def _boxes(op: ops.BoxRound) -> int:
    """Count the memory of the boxes in a round: the box to send, the received box, and the masked box."""
    here = np.arange(len(op.source_of))
    comes = bool(((op.source_of != here) & (op.source_of >= 0)).any())
    got = op.source_of >= 0
    masked = bool((op.extents[got] != op.size).any()) if op.size else not got.all()
    return 1 + comes + masked
