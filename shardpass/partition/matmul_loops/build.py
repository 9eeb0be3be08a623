"""Build the loop of a candidate: partial products alternate with collective_permutes.

Problem. n devices of a group, p the place of a device in it. Block b of a product is what the tile of place b gives
(``product.Blocks``): a block of the result, or a term of a sum.

1. Gather. A tile goes round the ring. In round t a device holds the tile of place p + t (modulo n), computes block
   p + t, and puts it into the result, or adds it. Both ways: tiles p + t and p - t in round t, half the rounds.

       n = 4:  round 0: p    round 1: p+1, p-1    round 2: p+2

2. Scatter. The sum of block b goes round the ring, and ends at place b; each device adds its own partial product: in
   round t device p adds to block p + h - t, where h is the number of devices from which a sum comes. Both ways: two
   sums for each block, of the n // 2 devices on one side and of the rest on the other, meet at place b, where its own
   partial product is added.

       n = 4, for block 0:  from below  2 -> 3 -> 0    from above  1 -> 0    at place 0 its own

Form. The rounds are a ``stablehlo.while``; where there are at most ``unroll`` tiles they are written out, and a single
round always is. Read in the HLO that XLA compiles for CPU (docs/collective_matmul.md has the figures): written out,
XLA's scheduler starts all permutes and slices as early as it can, as nothing orders them (it drops
``optimization_barrier`` before it schedules), and the tiles that wait together are as large as the gathered array: 32
MiB of temporaries for a layer that has 34 without loops. Values carried by a loop have one buffer each: 10 MiB, at no
more time. For GPU nothing was compiled.

Sums of narrow floats (bf16, f16) over the tiles of an all_gather are kept in f32, as a single product keeps them.

Invariant: the array that is gathered or scattered is not made, nor anything of its size but the product's own result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import AXES, BESIDE, CAUSE, get_text
from shardpass.ir.integers import integer, numbers
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, operation, retype, shape_of, splat
from shardpass.partition.matmul_loops.find import Candidate, Ints, LoopProduct

NARROW = ("bf16", "f16", "f8")


def build(candidate: Candidate, channels: Iterator[int], both_ways: bool, unroll: int) -> None:
    """Replace the candidate's collective and products by loops, and erase them."""
    for part in candidate.parts:
        replaced = part.op if candidate.is_gather else candidate.collective
        with ir.InsertionPoint(replaced), part.op.location:
            ring = Ring(candidate.groups, candidate.collective, channels)
            loop = Loop(part, ring, both_ways, candidate.count <= unroll)
            result = loop.gather() if candidate.is_gather else loop.scatter()
        replaced.results[0].replace_all_uses_with(result)
    _erase(candidate)


def _erase(candidate: Candidate) -> None:
    """Erase the collective, its products and the ops between them, which are now unused."""
    left = [candidate.collective, *(part.op for part in candidate.parts)]
    left += {op for part in candidate.parts if part.tiles for op in part.tiles.between}
    while left:
        unused = [op for op in left if not any(True for _ in op.results[0].uses)]
        left = [op for op in left if op not in unused]
        for op in unused:
            op.erase()


@dataclass(slots=True)
class Ring:
    """A ring of the devices of each group, with the position of each device in its ring."""

    groups: Ints
    collective: Any
    channels: Iterator[int]
    _place: Any = field(default=None)

    @property
    def count(self) -> int:
        return int(self.groups.shape[1])

    def place(self) -> Any:
        """Build a scalar: this device's position in its group."""
        if self._place is None:
            table = np.empty(self.groups.size, np.int64)
            table[self.groups] = np.arange(self.count)
            self._place = device_value(table)
        return self._place

    def from_place(self, value: Any, by: int) -> Any:
        """Build a permute: the result is ``value`` of the device ``by`` positions further on in the ring."""
        pairs = np.stack([np.roll(self.groups, -by, axis=1).ravel(), self.groups.ravel()], axis=1)
        handle = hlo.ChannelHandle.get(next(self.channels), 1)
        with self.collective.location:
            built = operation(hlo.CollectivePermuteOp(value, dense_i64(pairs), channel_handle=handle))
        for name in (AXES, CAUSE):
            if note := get_text(self.collective, name):
                built.attributes[name] = ir.StringAttr.get(note + BESIDE if name == CAUSE else note)
        return built.results[0]

    def block(self, by: Any) -> Any:
        """Build a scalar: (position + ``by``) modulo n. ``by``: a number or a scalar."""
        if isinstance(by, int):
            if by % self.count == 0:
                return self.place()
            by = number(by % self.count)
        return hlo.remainder(hlo.add(self.place(), by), number(self.count))


def number(value: int) -> Any:
    """Build a constant scalar, of the integer type used for counts of devices and rounds."""
    return integer(numbers(value), value)


@dataclass(slots=True)
class Loop:
    """One product, overlapped with permutes around a ring."""

    part: LoopProduct
    ring: Ring
    both_ways: bool
    written_out: bool

    # --- gather

    def gather(self) -> Any:
        assert self.part.tiles is not None
        tile = self.part.tiles.tile()
        n = self.ring.count
        ways = (1, -1) if self.both_ways else (1,)
        rounds = (n - 1) // len(ways)

        def sent(current: list[Any]) -> list[Any]:
            return [self.ring.from_place(one, way) for one, way in zip(current, ways, strict=True)]

        def multiplied(t: Any, total: Any, current: list[Any]) -> Any:
            for one, way in zip(current, ways, strict=True):
                total = self._put(total, one, self.ring.block(self._times(t, way)))
            return total

        def body(t: Any, total: Any, current: list[Any]) -> tuple[Any, list[Any]]:
            """Multiply the current tiles, and send them on at the same time."""
            return multiplied(t, total, current), sent(current)

        current = sent([tile] * len(ways))
        total = self._put(None, tile, self.ring.block(0))
        total, current = self._rounds(rounds - 1, total, current, body)
        # of an even number both ways one tile is left, at the other side of the ring
        last = [self.ring.from_place(current[0], 1)] if (n - 1) % len(ways) else []
        total = multiplied(rounds, total, current)
        for one in last:
            total = self._put(total, one, self.ring.block(n // 2))
        kind = self.part.op.results[0].type
        return total if total.type == kind else hlo.convert(kind, total)

    def _put(self, total: Any, tile: Any, block: Any) -> Any:
        """Multiply ``tile`` and put the product into ``total`` as block ``block``, or add it to ``total``."""
        blocks, count = self.part.blocks, self.ring.count
        other = self.part.op.operands[1 - blocks.side]
        product = self._product(tile, self._cut(other, blocks.other, block), sums=blocks.result is None)
        if blocks.result is None:
            return product if total is None else hlo.add(total, product)
        kind = self.part.op.results[0].type
        if total is None:
            total = splat(kind, _zero(kind))
        starts = self._starts(len(kind.shape), blocks.result, block, kind.shape[blocks.result] // count)
        return hlo.dynamic_update_slice(total, product, starts)

    # --- scatter

    def scatter(self) -> Any:
        n = self.ring.count
        ways = (1, -1) if self.both_ways else (1,)
        reach = [n // 2, (n - 1) // 2] if self.both_ways else [n - 1]  # devices on each side of the block's own
        # sums that come from below (way 1) end at place p + reach; those from above at p - reach
        sums = [self._partial(self.ring.block(way * far)) for way, far in zip(ways, reach, strict=True)]
        if len(set(reach)) > 1:  # one more device below than above
            sums[0] = self._add(self.ring.from_place(sums[0], -1), self.ring.block(reach[0] - 1))
        least = min(reach)

        def body(t: Any, sums: Any, current: list[Any]) -> tuple[Any, list[Any]]:
            moved = [self.ring.from_place(one, -way) for one, way in zip(current, ways, strict=True)]
            blocks = [self.ring.block(self._times(self._less(least, t), way)) for way in ways]
            return sums, [self._add(one, block) for one, block in zip(moved, blocks, strict=True)]

        _, sums = self._rounds(least - 1, None, sums, body)
        total = self._partial(self.ring.block(0))
        for one, way in zip(sums, ways, strict=True):
            total = hlo.add(total, self.ring.from_place(one, -way))
        return total

    def _add(self, total: Any, block: Any) -> Any:
        return hlo.add(total, self._partial(block))

    def _partial(self, block: Any) -> Any:
        """Build this device's summand of block ``block`` of the result."""
        blocks, operands = self.part.blocks, self.part.op.operands
        one = self._cut(operands[blocks.side], blocks.dim, block)
        return self._product(one, self._cut(operands[1 - blocks.side], blocks.other, block), sums=False)

    # --- rounds

    def _rounds(self, count: int, total: Any, current: list[Any], body: Any) -> tuple[Any, list[Any]]:
        """Apply ``body`` for t = 1 .. ``count``, unrolled or as a ``while`` loop."""
        if self.written_out or count < 2:
            for t in range(1, count + 1):
                total, current = body(t, total, current)
            return total, current
        carried = [number(1), *([] if total is None else [total]), *current]
        loop = ir.Operation.create("stablehlo.while", [v.type for v in carried], carried, regions=2)
        kinds = [value.type for value in carried]
        test = loop.regions[0].blocks.append(*kinds)
        with ir.InsertionPoint(test):
            less = hlo.ComparisonDirectionAttr.get("LE")
            hlo.return_([hlo.compare(test.arguments[0], number(count), less)])
        block = loop.regions[1].blocks.append(*kinds)
        self.ring.place()
        with ir.InsertionPoint(block):
            t, *inside = block.arguments
            before = None if total is None else inside.pop(0)
            after, moved = body(t, before, inside)
            hlo.return_([hlo.add(t, number(1)), *([] if total is None else [after]), *moved])
        _, *values = loop.results
        return (None if total is None else values.pop(0)), values

    def _times(self, t: Any, way: int) -> Any:
        """Move ``t`` places in direction ``way``; a scalar stays non-negative, as a remainder takes the sign."""
        if isinstance(t, int):
            return t * way
        return t if way == 1 else hlo.subtract(number(self.ring.count), t)

    @staticmethod
    def _less(whole: int, t: Any) -> Any:
        return whole - t if isinstance(t, int) else hlo.subtract(number(whole), t)

    # --- blocks

    def _cut(self, value: Any, dim: int | None, block: Any) -> Any:
        """Slice block ``block`` of ``value`` along ``dim``; the whole ``value`` if ``dim`` is None."""
        if dim is None:
            return value
        shape = list(shape_of(value))
        shape[dim] //= self.ring.count
        return hlo.dynamic_slice(value, self._starts(len(shape), dim, block, shape[dim]), shape)

    def _starts(self, rank: int, dim: int, block: Any, size: int) -> list[Any]:
        kind = numbers(self.ring.count * size)
        zero, start = integer(kind, 0), block if block.type == kind else hlo.convert(kind, block)
        start = hlo.multiply(start, integer(kind, size)) if size != 1 else start
        return [start if k == dim else zero for k in range(rank)]

    def _product(self, one: Any, other: Any, *, sums: bool) -> Any:
        """Multiply a block of the operand ``side`` with a block of the other operand."""
        op, side = self.part.op, self.part.blocks.side
        operands = (one, other) if side == 0 else (other, one)
        kind = op.results[0].type
        element = str(kind.element_type)
        if sums and element.startswith(NARROW):
            kind = ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
        shape = self._shape(operands)
        attributes = {name: op.attributes[name] for name in op.attributes if not name.startswith("shardpass.")}
        made = ir.Operation.create("stablehlo.dot_general", [retype(kind, shape)], list(operands), attributes)
        return made.results[0]

    def _shape(self, operands: tuple[Any, Any]) -> list[int]:
        product = self.part.product
        left, right = (shape_of(operand) for operand in operands)
        batch = [left[dim] for dim in product.batch[0]]
        return [*batch, *(left[dim] for dim in product.free(0)), *(right[dim] for dim in product.free(1))]


def _zero(kind: Any) -> str:
    text = str(kind.element_type)
    return "(0.0, 0.0)" if text.startswith("complex") else "0.0" if text[0] in "fb" else "0"
