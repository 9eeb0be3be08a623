"""Build integer constants within the range of their type, and choose the type that is wide enough for a range.

MLIR's parser reads ``dense<2147483649> : tensor<i32>`` as -2147483647. Numbers that depend on the sizes of a program
are therefore built here alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

WIDTHS = (32, 64)  # of counts and positions, the narrowest first


class OutOfRange(OverflowError):
    """A number is out of range for its element type."""

    def __init__(self, number: int, element: Any) -> None:
        super().__init__(f"{number} is no {element}")
        self.number, self.element = number, str(element)


def greatest(element: Any) -> int:
    """Return the greatest number of an integer type."""
    return int(2**element.width - 1 if element.is_unsigned or element.width == 1 else 2 ** (element.width - 1) - 1)


def least(element: Any) -> int:
    """Return the least number of an integer type."""
    return 0 if element.is_unsigned or element.width == 1 else int(-(2 ** (element.width - 1)))


def check_range(number: int, element: Any) -> None:
    """Raise OutOfRange if the integer type ``element`` cannot represent ``number``."""
    if not least(element) <= number <= greatest(element):
        raise OutOfRange(number, element)


def numbers(bound: int, shape: Sequence[int] = ()) -> Any:
    """Return the tensor type with the narrowest of ``WIDTHS`` that can represent -bound to bound.

    Raises OutOfRange where none does.
    """
    elements = [ir.IntegerType.get_signless(width) for width in WIDTHS]
    for element in elements:
        if bound <= greatest(element):
            return ir.RankedTensorType.get(list(shape), element)
    raise OutOfRange(bound, elements[-1])


def integer(kind: Any, number: int) -> Any:
    """Build a constant of the tensor type ``kind`` whose elements are all ``number``.

    Raises OutOfRange where the element type does not hold ``number``.
    """
    element = kind.element_type
    check_range(number, element)
    signed = number if number <= greatest(ir.IntegerType.get_signless(64)) else number - 2**64  # the bits of a ui64
    return hlo.constant(ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, signed)))
