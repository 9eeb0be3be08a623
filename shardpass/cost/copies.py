"""Find the arrays that XLA copies to another layout before or after an op.

| op | wants, the outermost dimension first |
|---|---|
| product of several dimensions | left: batch, free, contracted dimensions; right: batch, contracted, free |
| product of two matrices | any |
| convolution | batch, space, features; of the kernel space, input, output features |
| all_gather, reduce_scatter | the dimension that is gathered or scattered |

Dimensions of one element lie anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Dims = Sequence[int]


def out_of_order(shape: Dims, wanted: Dims) -> bool:
    """Return whether an array of ``shape`` is copied for a reader that needs the dimension order ``wanted``."""
    long = [dim for dim in wanted if shape[dim] != 1]
    return long != sorted(long)


def of_product(shapes: Sequence[Dims], batch: Sequence[Dims], contracted: Sequence[Dims]) -> tuple[bool, bool]:
    """Return whether the left and the right operand of a product are copied."""
    free = [
        [dim for dim in range(len(shape)) if dim not in over and dim not in along]
        for shape, over, along in zip(shapes, batch, contracted, strict=True)
    ]
    plain = all(
        list(over) == list(range(len(over))) and len(along) == 1 and len(rest) <= 1
        for over, along, rest in zip(batch, contracted, free, strict=True)
    )
    if plain:
        return False, False
    left, right = [*batch[0], *free[0], *contracted[0]], [*batch[1], *contracted[1], *free[1]]
    return out_of_order(shapes[0], left), out_of_order(shapes[1], right)


def along(shape: Dims, dim: int) -> bool:
    """Return whether an all_gather to ``shape`` along ``dim``, or a reduce_scatter from ``shape``, copies the array."""
    return prod(shape[:dim]) > 1


def apart(shape: Dims, dim: int, element: int, parts: int) -> bool:
    """Return whether XLA computes a concatenate of ``parts`` arrays along ``dim`` in a separate kernel instead of a
    fusion.

    ``shape``: of the result. ``element``: bytes of one element.
    """
    rows = len(shape) > 1 and dim == len(shape) - 1
    return parts > 8 or (rows and shape[dim] * element >= 64 and prod(shape) * element >= 2048)
