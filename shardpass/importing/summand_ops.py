"""Ops that keep partial sums: summands of their operands give summands of the result.

``LINEAR`` names the ops that are linear in some operands together, with the places of these: a concatenate of partial
sums is a partial sum, a concatenate of a partial sum and a whole array is none until the array is summands too. The
other operands are needed whole along the axes of the partial sum.

``SUMMING`` names those that add up over dimensions of their operands: where these are split, each device's sum is a
summand. Their first operand, of a reduce and a scatter, is summed too.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

LINEAR: dict[str, tuple[int, ...] | None] = {  # None: all operands
    "stablehlo.add": None,
    "stablehlo.subtract": None,
    "stablehlo.negate": None,
    "stablehlo.convert": None,
    "stablehlo.transpose": None,
    "stablehlo.reshape": None,
    "stablehlo.broadcast_in_dim": None,
    "stablehlo.slice": None,
    "stablehlo.reverse": None,
    "stablehlo.concatenate": None,
    "stablehlo.real": None,
    "stablehlo.imag": None,
    "stablehlo.complex": None,
    "stablehlo.pad": None,
    "stablehlo.dynamic_slice": (0,),
    "stablehlo.dynamic_update_slice": (0, 1),
    "stablehlo.gather": (0,),
    "stablehlo.select": (1, 2),
    "stablehlo.divide": (0,),
}
BILINEAR = ("stablehlo.multiply", "stablehlo.dot_general")  # linear in one of two operands, whichever is a partial sum
SUMMING = {  # the operand whose elements are added up; of a dot_general these are products of two
    "stablehlo.dot_general": None,
    "stablehlo.reduce": 0,
    "stablehlo.scatter": 2,
}


def summand_places(op: Any) -> tuple[int, ...]:
    """Returns the operands of ``op`` in which it is linear together."""
    if op.name == "stablehlo.scatter":
        return (0, 2)
    places = LINEAR.get(op.name)
    return tuple(range(len(op.operands))) if places is None else places


def keeps_sums(op: Any) -> bool:
    """Whether the sum of results is the result of the sum: false for ops that round to integers, and for booleans."""
    if op.name == "stablehlo.divide":
        return not isinstance(op.results[0].type.element_type, ir.IntegerType)
    kinds = [value.type.element_type for value in (*op.operands, *op.results)]
    if op.name == "stablehlo.convert":
        return isinstance(kinds[1], ir.FloatType) or (isinstance(kinds[0], ir.IntegerType) and not _is_bool(kinds[1]))
    return not _is_bool(op.results[0].type.element_type)


def _is_bool(kind: Any) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.width == 1
