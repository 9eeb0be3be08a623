"""A dot_general as plain values: what each dimension of an operand is to it, and its blocks along one of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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
    """Return the dimension of ``after`` along which ``count`` tiles lie that lie along ``dim`` of ``before``; None if
    there is none.

    Example: dim 1 of [256, 4, 128] becomes dim 1 of [256, 512], as equally many elements come before it.
    """
    outer = prod(before[:dim])
    for place, size in enumerate(after):
        if prod(after[:place]) == outer and size % count == 0:
            return place
    return None
