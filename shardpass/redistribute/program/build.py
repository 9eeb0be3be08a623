"""Build a device program together with its accounts: steps, bytes received, memory.

Problem: a plan's accounts (``Step``, bytes, peak) must be true of its program. So one call appends to both, and nothing
else writes either.

State: the program so far; the shape of the local array after it (``tile``); the bytes that each device has received;
the memory that the program takes (``memory``).

Bytes received are those of ``cost.collective``. A dynamic_slice brings nothing; a collective_permute brings the tile to
a device that another sends to. A round of boxes counts its box's full shape.

Invariants: a step ends with a tile of the problem; ops between two steps are counted to the step after them.
O(devices) for each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from shardpass.cost.collective import bytes_received
from shardpass.element_types import ElementType
from shardpass.redistribute.problem.device_arrays import IntArray, moving_pairs
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.local_work import LocalPrices, LocalWork, local_work, usual_prices
from shardpass.redistribute.program.memory import Memory
from shardpass.redistribute.program.ops import Op
from shardpass.redistribute.program.steps import Refusal, Step, StepKind

Strategy = Callable[["Builder"], None]  # appends a plan, or a part of one, to a builder
NO_GROUPS: IntArray = np.empty((0, 0), np.int64)
FREE = usual_prices(math.inf)
REARRANGING = ops.DynamicSlice | ops.Pad | ops.Trim | ops.Transpose


class Builder:
    """A device program under construction, on local arrays that start with the shape ``tile``.

    The methods named after collectives add one op and one step; ``local`` adds an op that is no step: reshape,
    transpose, padding; ``step`` and ``rounds`` add several ops as one step, or as one for each round.
    """

    def __init__(
        self,
        tile: tuple[int, ...],
        element: ElementType,
        sub_axes: SubAxes,
        label: str = "",
        reduction: str = "add",
        prices: LocalPrices = FREE,
    ) -> None:
        self.start = tile
        self.tile = tile
        self.element = element
        self.sub_axes = sub_axes
        self.reduction = reduction  # the op that joins partial values
        self.prices = prices  # of local work, by which a form is chosen
        self.program: list[Op] = []
        self.steps: list[Step] = []
        self.label = label  # the name of the candidate; "": its steps say it
        self.refused: list[Refusal] = []  # the candidates that lost against this plan
        self._memory = Memory(tile, element)
        self._work: tuple[int, LocalWork] | None = None  # of so many ops
        self._padded: tuple[int, tuple[int, ...]] = (0, tile)  # so many ops end with a Pad of such a tile
        self.received: IntArray = np.zeros(sub_axes.devices, np.int64)

    @property
    def devices(self) -> int:
        return len(self.received)

    @property
    def memory(self) -> Memory:
        """Return the memory that the program needs so far."""
        self._memory.follow(self.program)
        return self._memory

    @property
    def work(self) -> LocalWork:
        """Return the local work of the program so far."""
        if self._work is None or self._work[0] != len(self.program):
            self._work = len(self.program), local_work(self.program, self.start, self.element)
        return self._work[1]

    @property
    def is_rearranged(self) -> bool:
        """Whether the next collective's operand is first cut, padded or transposed, in an open loop."""
        last = next((op for op in reversed(self.program) if not isinstance(op, ops.Reshape)), None)
        return isinstance(last, REARRANGING)

    def cheapest(self, forms: Sequence[list[Op]]) -> list[Op]:
        """Return the form with the least local work; among equals, the first."""
        if len(forms) == 1:
            return forms[0]
        return min(
            forms, key=lambda form: self.prices.seconds(local_work([*self.program, *form], self.start, self.element))
        )

    def after(self, first: Builder) -> Builder:
        """Return ``first`` followed by this plan, which starts where ``first`` ends."""
        self.start = first.start
        self._work = None
        self._memory = self.memory.after(first.memory)
        self.program = [*first.program, *self.program]
        self.steps = [*first.steps, *self.steps]
        self.received = first.received + self.received
        self.refused = [*first.refused, *self.refused]
        return self

    def instead_of(self, way: str, why: str) -> Builder:
        """Record that this plan was chosen instead of ``way``, and return this plan."""
        self.refused.append(Refusal(way, why))
        return self

    def bytes(self, tile: tuple[int, ...]) -> int:
        return self.element.bytes(math.prod(tile))

    def local(self, op: Op, tile: tuple[int, ...]) -> None:
        self.program.append(op)
        self.tile = tile

    def pad(self, tile: tuple[int, ...]) -> None:
        """Pad the end of each axis with zeros, up to ``tile``."""
        before = self.tile
        self.local(ops.Pad(tile), tile)
        self._padded = len(self.program), before

    def dynamic_slice(self, tile: tuple[int, ...], starts: IntArray) -> None:
        """Slice the array, starting with axes that were not just padded, so that less is padded."""
        count, bare = self._padded
        is_last = count == len(self.program) > self._memory.seen
        if is_last and all(a == b or n == b for a, n, b in zip(bare, tile, self.tile, strict=True)):
            sizes = tuple(n if n < b else a for a, n, b in zip(bare, tile, self.tile, strict=True))
            self.program[-1:] = [ops.DynamicSlice(sizes, starts), ops.Pad(tile)]
        else:
            self.program.append(ops.DynamicSlice(tile, starts))
        self._step(StepKind.DYNAMIC_SLICE, (), NO_GROUPS, tile, 0)

    def all_to_all(self, split: int, concat: int, groups: IntArray) -> None:
        size = groups.shape[1]
        axes = self.sub_axes.along(groups)
        tile = list(self.tile)
        tile[split] //= size
        tile[concat] *= size
        moved = bytes_received(StepKind.ALL_TO_ALL, self.bytes(self.tile), size)
        self.program.append(ops.AllToAll(split, concat, groups, axes))
        self._step(StepKind.ALL_TO_ALL, axes, groups, tuple(tile), moved)

    def all_gather(self, axis: int, groups: IntArray) -> None:
        size = groups.shape[1]
        axes = self.sub_axes.along(groups)
        tile = list(self.tile)
        tile[axis] *= size
        self.program.append(ops.AllGather(axis, groups, axes))
        moved = bytes_received(StepKind.ALL_GATHER, self.bytes(self.tile) * size, size)
        self._step(StepKind.ALL_GATHER, axes, groups, tuple(tile), moved)

    def all_reduce(self, groups: IntArray) -> None:
        axes = self.sub_axes.along(groups)
        moved = bytes_received(StepKind.ALL_REDUCE, self.bytes(self.tile), groups.shape[1])
        self.program.append(ops.AllReduce(groups, self.reduction, axes))
        self._step(StepKind.ALL_REDUCE, axes, groups, self.tile, moved)

    def permute(self, source_of: IntArray) -> None:
        """Send every device the array of its source; no op if every device is its own source."""
        here = np.arange(self.devices)
        moved = source_of != here
        if not moved.any():
            return
        pairs = np.stack([source_of, here], axis=1)[moved]
        axes = self.sub_axes.along(pairs)
        self.program.append(ops.Permute(source_of, axes))
        self._step(StepKind.COLLECTIVE_PERMUTE, axes, pairs, self.tile, np.where(moved, self.bytes(self.tile), 0))

    def box_round(self, boxes: ops.BoxRound) -> None:
        """Append a round of a box exchange; without transfers between devices, a local op."""
        here = np.arange(self.devices)
        moved = (boxes.source_of != here) & (boxes.source_of >= 0)
        if not moved.any():
            self.program.append(boxes)
            return
        pairs = np.stack([boxes.source_of, here], axis=1)[moved]
        axes = self.sub_axes.along(pairs)
        self.program.append(replace(boxes, axes=axes))
        received = np.where(moved, self.bytes(boxes.size), 0)
        self._step(StepKind.COLLECTIVE_PERMUTE, axes, pairs, boxes.size, received)

    def slide(self, op: ops.Slide) -> None:
        """Append a permute of the halo's rows and each device's window; a local op where there is no halo."""
        tile = (*self.tile[: op.axis], op.size, *self.tile[op.axis + 1 :])
        if not op.halo:
            self.local(op, tile)
            return
        halo = (*self.tile[: op.axis], op.halo, *self.tile[op.axis + 1 :])
        receivers = np.flatnonzero(op.source_of >= 0)
        pairs = np.stack([op.source_of[receivers], receivers], axis=1)
        self.program.append(replace(op, axes=self.sub_axes.along(pairs)))
        received = np.where(op.source_of >= 0, self.bytes(halo), 0)
        self._step(StepKind.COLLECTIVE_PERMUTE, self.sub_axes.along(pairs), pairs, tile, received)

    def step(
        self,
        kind: StepKind,
        program: Iterable[Op],
        groups: IntArray,
        tile: tuple[int, ...],
        received: IntArray | int,
        axes: tuple[str, ...] = (),
    ) -> None:
        """Append a step of several ops, after which the local array is the tile ``tile``."""
        self.program += program
        self._step(kind, axes, groups, tile, received)

    def rounds(self, program: Iterable[Op], source_of: IntArray, chunk: tuple[int, ...], tile: tuple[int, ...]) -> None:
        """Append ``program``, which contains one ``ChunkRounds``, with a step for each round that moves a chunk."""
        here = np.arange(self.devices)
        moved = source_of != here
        pairs = np.stack([source_of, np.broadcast_to(here, source_of.shape)], axis=-1)
        names = self.sub_axes.along(moving_pairs(source_of))
        self.program += program
        moving = np.flatnonzero(moved.any(axis=1)).tolist()
        for r in moving:
            after = tile if r == moving[-1] else self.tile
            received = np.where(moved[r], self.bytes(chunk), 0)
            self._step(StepKind.COLLECTIVE_PERMUTE, names, pairs[r][moved[r]], after, received)

    def _step(
        self,
        kind: StepKind,
        axes: tuple[str, ...],
        groups: IntArray,
        tile: tuple[int, ...],
        received: IntArray | int,
    ) -> None:
        self.received += received
        live = self._memory.follow(self.program) or self.steps[-1].live  # a further round has no ops of its own
        self.steps.append(Step(kind, axes, groups, self.tile, tile, int(np.max(received)), live))
        self.tile = tile


def in_sequence(*strategies: Strategy) -> Strategy:
    """Run the strategies in sequence."""

    def build(builder: Builder) -> None:
        for strategy in strategies:
            strategy(builder)

    return build
