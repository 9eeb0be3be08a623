"""Price products in blocks: a collective and its products in sequence and overlapped, and the choice of loops.

What a collective and its products cost one after the other, and in turn; and which pairs are to become loops.

A product takes as long as its multiplications, or as reading its operands and writing its result: the longer. In turn,
the first block is computed while nothing is sent; in each later round a device computes the blocks that it holds while
it sends what comes next: the longer of the two counts. Blocks that go both ways round travel together.

Example, 4 devices: 3 tiles are received in 52 us, one in 24, and the product takes 100 us: 152 us. In turn there are 4
blocks of 25 us: 25 + 3 * max(24, 25) = 100 us.

A dot_general as plain values: what each dimension of an operand is to it, and its blocks along one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from shardpass.cost.chosen import chosen
from shardpass.cost.collective import ALL_GATHER, PERMUTE, REDUCE_SCATTER, bytes_received
from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine, Work
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.sub_axes import SubAxes

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """The shapes of a dot_general, and its dimensions by their role.

    ``batch`` and ``contract``: dimensions of the left and of the right operand. Dimensions of the result are the batch
    dimensions, the free ones of the left operand, and the free ones of the right operand, in this order.
    """

    shapes: tuple[Shape, Shape]
    result: Shape
    batch: tuple[Shape, Shape]
    contract: tuple[Shape, Shape]

    def free(self, side: int) -> Shape:
        others = (*self.batch[side], *self.contract[side])
        return tuple(dim for dim in range(len(self.shapes[side])) if dim not in others)

    @property
    def points(self) -> int:
        """The number of multiplications."""
        return prod(self.result) * prod(self.shapes[0][dim] for dim in self.contract[0])

    def along(self, side: int, dim: int) -> Blocks:
        """Return the cut of the product into blocks along dimension ``dim`` of operand ``side``."""
        other = 1 - side
        if dim in self.contract[side]:
            return Blocks(side, dim, self.contract[other][self.contract[side].index(dim)], None)
        if dim in self.batch[side]:
            number = self.batch[side].index(dim)
            return Blocks(side, dim, self.batch[other][number], number)
        before = len(self.batch[0]) + (len(self.free(0)) if side else 0)
        return Blocks(side, dim, None, before + self.free(side).index(dim))

    def along_result(self, dim: int) -> Blocks:
        """Return the cut of the product along dimension ``dim`` of the result; a batch dimension is cut on the
        left operand.
        """
        batch, left = len(self.batch[0]), len(self.free(0))
        if dim < batch:
            return self.along(0, self.batch[0][dim])
        if dim < batch + left:
            return self.along(0, self.free(0)[dim - batch])
        return self.along(1, self.free(1)[dim - batch - left])


@dataclass(frozen=True, slots=True)
class Blocks:
    """A cut of a product into blocks: along ``dim`` of operand ``side``.

    A block takes the same block of the other operand along ``other`` (None: all of it), and is a block of the result
    along ``result``; where that is None, the blocks are terms of a sum.
    """

    side: int
    dim: int
    other: int | None
    result: int | None


def reshaped(before: Shape, after: Shape, dim: int, count: int) -> int | None:
    """Return the dimension of ``after`` that contains the ``count`` tiles along ``dim`` of ``before``; None if there
    is none.

    Example: dim 1 of [256, 4, 128] becomes dim 1 of [256, 512], as equally many elements come before it.
    """
    outer = prod(before[:dim])
    for place, size in enumerate(after):
        if prod(after[:place]) == outer and size % count == 0:
            return place
    return None


OFF, ALL, MEMORY = "off", "all", "memory"


@dataclass(frozen=True, slots=True)
class Part:
    """A product of a pair, and how it is cut. ``bytes``: of the left operand, the right one, and the result.

    ``element``: the element type of the multiplication.
    """

    product: Product
    blocks: Blocks
    bytes: tuple[int, int, int]
    element: str


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A collective and the products that could run overlapped with it.

    ``groups``: of the collective, [groups, devices of a group]. ``bytes``: of the array that a loop does not make: the
    gathered array, or the one that would be scattered.
    """

    is_gather: bool
    groups: IntArray
    bytes: int
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        """Devices in a group, which is the number of tiles or blocks."""
        return int(self.groups.shape[1])


@dataclass(frozen=True, slots=True)
class Price:
    """Modelled seconds: of the collective, of its products, and of the loops that would replace both."""

    collective: float
    products: float
    in_turn: float

    @property
    def apart(self) -> float:
        """Seconds of the collective and its products in sequence."""
        return self.collective + self.products

    @property
    def beside(self) -> float:
        """Seconds that the loops take beyond the products alone."""
        return max(0.0, self.in_turn - self.products)


@dataclass(frozen=True, slots=True)
class LoopTerms:
    """Which pairs become loops: OFF, ALL, MEMORY (loops that need less memory), or a machine (loops that save time
    on it).

    ``one_way``: tiles go round the ring in one direction.
    """

    which: str = OFF
    one_way: bool = False

    def machine(self, usual: Machine) -> Machine:
        """Return the machine whose time is modeled: the one named by ``which``, else ``usual``."""
        return usual if self.which in (OFF, ALL, MEMORY) else chosen(self.which)

    def both_ways(self, pair: Pair) -> bool:
        """Return whether tiles go both ways round the ring: not for 4 devices or fewer, which would then hold all
        tiles at once.
        """
        return not self.one_way and pair.count > 4

    def take(self, pair: Pair, cost: Price) -> bool:
        """Return whether ``pair`` becomes a loop."""
        if self.which == MEMORY:
            return resident_bytes(pair, self.both_ways(pair)) < pair.bytes
        return self.which == ALL or (self.which != OFF and cost.in_turn < cost.apart)


def rounds(count: int, both_ways: bool) -> list[int]:
    """Return how many of ``count`` blocks are computed in each round after the first: ``[2, 1]`` for 4, both ways."""
    return [2] * ((count - 1) // 2) + [1] * ((count - 1) % 2) if both_ways else [1] * (count - 1)


def price(pair: Pair, machine: Machine, sub_axes: SubAxes, both_ways: bool) -> Price:
    """Return the modelled seconds of ``pair`` on ``machine``, overlapped and not."""
    count, groups = pair.count, pair.groups
    kind = ALL_GATHER if pair.is_gather else REDUCE_SCATTER
    collective = seconds(machine, kind, bytes_received(kind, pair.bytes, count), groups, sub_axes.borders)
    ends = np.stack([groups.ravel(), np.roll(groups, 1, axis=1).ravel()], axis=1)
    hop = seconds(machine, PERMUTE, pair.bytes // count, ends)
    products = in_turn = 0.0
    for part in pair.parts:
        products += _seconds(part, 1, machine)
        each = _seconds(part, count, machine)
        in_turn += each + sum(max(hop, blocks * each) for blocks in rounds(count, both_ways))
    return Price(collective, products, in_turn)


def _seconds(part: Part, count: int, machine: Machine) -> float:
    """Return the seconds of one block of a product that is cut into ``count`` blocks."""
    blocks = part.blocks
    is_cut = [side == blocks.side or blocks.other is not None for side in (0, 1)] + [blocks.result is not None]
    touched = sum(size // count if cut else size for size, cut in zip(part.bytes, is_cut, strict=True))
    return machine.seconds(Work(2 * part.product.points / count, part.element, touched))


def resident_bytes(pair: Pair, both_ways: bool) -> int:
    """Return the bytes that a loop keeps instead of the array that it avoids.

    These are the present tile and the next one, each way; and one more term where the blocks are terms of a sum.
    """
    tiles = min(4 if both_ways else 2, pair.count - 1)
    terms = [part.bytes[2] for part in pair.parts if part.blocks.result is None]
    return tiles * (pair.bytes // pair.count) + max(terms, default=0)
