"""Count the local work of a device program: the passes of XLA's loops over memory, and their slowdowns.

Problem: two programs that receive the same bytes differ by half in time, by how a device cuts the pieces that it sends
and joins those that come. XLA fuses local ops up to the next collective into one loop over the array that is written.
Four numbers tell such loops apart (``LocalWork``):

1. ``bytes``: written, and read once.
2. ``runs``: stretches that are joined by a call of memcpy each.
3. ``elements``: written one by one, where no memcpy writes a run of them. Where an inner loop reads a *stretch* of them
   on end, they count half, and the stretch as one more. A run of at most 16 bytes takes no call and counts as 20.
4. ``places``: of these, those whose place in the operand takes a division. That is so where the innermost dimension of
   the array that is written is several dimensions of what is read: f32[8, 28] from f32[4, 8, 7] transposed. Further
   out a division is done once for the whole inner loop, and splitting a dimension takes none. With 8 pieces
   that came each counts twice, as with 4 it counts once: the loop compares it with the ends of pieces.

State: the shape of the local array, and the ``_Loop`` that has read but not yet written it. Cases:

1. Local ops join the loop. A transpose that leaves the innermost dimensions reads stretches; a reshape that merges
   these with others, after a slice, a transpose or a joining, makes places instead.
2. A collective writes the loop first. A permute, an all_reduce, and gathers and scatters along the leading axis need no
   other loop.
3. An all_to_all writes its pieces; where each is cut by a slice, in stretches. A new loop joins those that come. If
   nothing follows, and they are joined along an axis inside, that is a memcpy for each run; a reshape that follows
   makes it choose a piece for each element.
4. Along another axis than the leading one, a gather ends with a transpose, a scatter begins with one.
5. Rounds and boxes copy as ``memory`` counts them.

Example: f32[8, 28] from pieces [8, 7] of four devices. Joined to [4, 8, 7] and transposed: a loop that writes 896 bytes
as 224 elements and computes as many places. Joined along the last axis: 896 bytes in 32 runs.

O(ops), and O(devices) for a round of a box exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardpass.element_types import ElementType
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.memory import Memory
from shardpass.redistribute.program.ops import Op

Shape = tuple[int, ...]


class LocalWork(NamedTuple):
    """Bytes written in all loops, runs copied by memcpy, elements written one at a time, and indices that need a
    division.
    """

    bytes: int = 0
    runs: int = 0
    elements: int = 0
    places: int = 0

    def plus(self, other: LocalWork) -> LocalWork:
        """Add the work of two programs in sequence."""
        return LocalWork(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class LocalPrices:
    """The prices of local work on a machine.

    Attributes:
        copies: bytes a second.
        runs: calls of memcpy a second, beside their bytes.
        elements: elements a second that are written one by one, beside their bytes.
        places: of these, places a second that are computed, beside that.
        gathers_by_pieces: whether a gather along an inner dimension may be an all_to_all of copies of the tile.
        cuts_by_slices: whether the blocks of an all_to_all may be slices that are joined (``ops.AllToAll``).
        floats_as_bits: whether floats of 8 and 16 bits should travel as integers. XLA's CPU client sends bf16 as f32.
    """

    copies: float
    runs: float
    elements: float
    places: float
    gathers_by_pieces: bool = False
    cuts_by_slices: bool = False
    floats_as_bits: bool = False

    def seconds(self, work: LocalWork) -> float:
        rates = (self.copies, self.runs, self.elements, self.places)
        return sum(count / rate for count, rate in zip(work, rates, strict=True))


# The bytes whose copy takes as long as a call of memcpy, as an element that is written alone, and as computing its
# place: in the ratio that they have on a CPU, and little beside the bytes, where a machine does not say it.
CALL, ELEMENT, PLACE = 20 / 64, 1 / 256, 1 / 128
SHORT, SHORT_RUN = 16, 20  # bytes of a run that a compiler writes without a call; the elements that take as long
USUAL_PIECES = 4  # that a loop joins, as places are priced


def usual_prices(copies: float) -> LocalPrices:
    """Return the prices of a machine, derived from the bytes it copies per second."""
    return LocalPrices(copies, copies / CALL, copies / ELEMENT, copies / PLACE)


def local_work(program: Sequence[Op], shape: Shape, element: ElementType) -> LocalWork:
    """Count the work of ``program`` on local arrays that start with ``shape``."""
    walk = _Walk(Memory(shape, element))
    for op in program:
        walk.follow(op)
    walk.write()
    return walk.done


@dataclass(slots=True)
class _Loop:
    """A loop over an array that is not written yet.

    ``jumps``: whether it reads otherwise than from end to end. ``stretch``: the elements that it reads on end in an
    inner loop, or 0. ``joined``: the elements of a run, where it joins pieces, else 0; ``inside``: along an axis that
    is not the leading one. ``places``: whether the places of its elements take divisions; ``pieces``: among how many
    each is looked for.
    """

    jumps: bool = False
    stretch: int = 0
    joined: int = 0
    inside: bool = False
    places: bool = False
    pieces: int = USUAL_PIECES


class _Walk:
    """Count local work op by op; ``memory`` follows the shapes, and counts the copies of rounds and boxes."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.loop: _Loop | None = None
        self.came = USUAL_PIECES  # by the collective before, for the loop after it
        self.done = LocalWork()

    def write(self) -> None:
        """End the current loop, if any: its array is written to memory."""
        loop, elements = self.loop, math.prod(self.memory.shape)
        if loop is not None:
            in_runs = self.memory.element.bytes(loop.joined) > SHORT
            runs = elements // loop.joined if in_runs else 0
            places = elements * loop.pieces // USUAL_PIECES if loop.places else 0
            one_by_one = elements if not loop.joined else 0 if in_runs else SHORT_RUN * (elements // loop.joined)
            if loop.stretch:
                one_by_one = min(elements, elements // loop.stretch + elements // 2)
            work = LocalWork(self.memory.element.bytes(elements), runs, one_by_one, places)
            self.done = self.done.plus(work)
        self.loop, self.came = None, USUAL_PIECES

    def follow(self, op: Op) -> None:
        shape = self.memory.shape
        match op:
            case ops.AsBits():
                pass
            case ops.Reshape():
                self._reshape(shape, op.shape)
            case ops.Transpose():
                self._jump(_unmoved(shape, op.permutation))
            case ops.DynamicSlice() | ops.Trim() | ops.Pad():
                self._jump()
            case ops.AllToAll():
                self._all_to_all(op, shape)
                return
            case ops.AllGather():
                self._all_gather(op, shape)
                return
            case ops.ReduceScatter():
                if math.prod(shape[: op.axis]) > 1:
                    self._jump()
                self.write()
            case ops.Permute() | ops.AllReduce() | ops.Zeros():
                self.write()
            case _:
                self._by_parts(op)
                return
        self.memory.follow_op(op)

    def _jump(self, stretch: int = 0) -> None:
        """Mark the loop as reading in stretches rather than from end to end."""
        if self.loop is None:
            self.loop = _Loop(pieces=self.came)
        self.loop.jumps, self.loop.joined, self.loop.stretch = True, 0, stretch

    def _reshape(self, before: Shape, after: Shape) -> None:
        loop = self.loop
        if loop is not None:
            merged = _innermost(after) > _innermost(before)
            loop.places |= loop.inside or (loop.jumps and merged)
            if merged:
                loop.stretch = 0
            loop.joined = 0 if loop.inside else loop.joined

    def _all_to_all(self, op: ops.AllToAll, shape: Shape) -> None:
        if self.loop is not None and math.prod(shape[op.split + 1 :]) == 1:
            self.loop.places = False  # the pieces are cut where the dimensions meet
        by_slices = self.loop is None and op.by_slices
        self._jump(math.prod(shape[op.split :]) // op.groups.shape[1] if by_slices else 0)
        self.write()
        came = (*shape[: op.split], shape[op.split] // op.groups.shape[1], *shape[op.split + 1 :])
        self.memory.follow_op(op)
        inside = math.prod(came[: op.concat]) > 1
        if op.split == op.concat or op.by_slices:
            self.loop = _Loop(joined=math.prod(came[op.concat :]), inside=inside)
        else:  # XLA joins along the split axis, and transposes
            self.loop = _Loop(jumps=True, places=inside and math.prod(came[op.concat + 1 :]) == 1)
        self.loop.pieces = op.groups.shape[1]

    def _all_gather(self, op: ops.AllGather, shape: Shape) -> None:
        self.write()
        inside = math.prod(shape[: op.axis]) > 1
        self.memory.follow_op(op)
        self.came = max(op.groups.shape[1], USUAL_PIECES)  # one buffer, which is turned as a whole
        if inside and op.by_pieces:
            self.loop = _Loop(joined=math.prod(shape[op.axis :]), inside=True)
        elif inside:
            rows = math.prod(shape[op.axis + 1 :]) > 1  # as XLA gathers in front
            stretch = math.prod(shape[op.axis :]) if rows else 0
            self.loop = _Loop(jumps=True, stretch=stretch, places=not rows, pieces=self.came)

    def _by_parts(self, op: Op) -> None:
        """Count case 5."""
        self.write()
        before = self.memory.copied
        self.memory.follow_op(op)
        self.done = self.done.plus(LocalWork(self.memory.copied - before))


def _innermost(shape: Shape) -> int:
    """Return the size of the innermost dimension larger than 1; 1 if there is none."""
    return next((n for n in reversed(shape) if n > 1), 1)


def _unmoved(shape: Shape, permutation: Sequence[int]) -> int:
    """Count the elements of the innermost dimensions that a transpose leaves where they are."""
    count = 1
    for axis in reversed(range(len(shape))):
        if permutation[axis] != axis:
            break
        count *= shape[axis]
    return count
