"""Ops that keep partial sums: summands of their operands give summands of the result.

``ops.linear`` has the linear ops.

``SUMMING`` names those that add up over dimensions of their operands: where these are split, each device's sum is a
summand. Their first operand, of a reduce and a scatter, is summed too.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ops.linear import ADDING_SCATTER, LINEAR, Linear

BILINEAR = ("stablehlo.multiply", "stablehlo.dot_general")  # linear in one of two operands, whichever is a partial sum
LINEAR_IN_ALL = Linear()
SUMMING = {  # the operand whose elements are added up; of a dot_general these are products of two
    "stablehlo.dot_general": None,
    "stablehlo.reduce": 0,
    "stablehlo.scatter": 2,
}


def summand_places(op: Any) -> tuple[int, ...]:
    """Return the indices of the operands in which ``op`` is linear together."""
    row = ADDING_SCATTER if op.name == "stablehlo.scatter" else LINEAR.get(op.name, LINEAR_IN_ALL)
    return row.of(len(op.operands))


def keeps_sums(op: Any) -> bool:
    """Return whether the op applied to a sum is the sum of the op applied to the summands.

    False for ops that round to integers, and for booleans.
    """
    if op.name == "stablehlo.divide":
        return not isinstance(op.results[0].type.element_type, ir.IntegerType)
    kinds = [value.type.element_type for value in (*op.operands, *op.results)]
    if op.name == "stablehlo.convert":
        return isinstance(kinds[1], ir.FloatType) or (isinstance(kinds[0], ir.IntegerType) and not _is_bool(kinds[1]))
    return not _is_bool(op.results[0].type.element_type)


def _is_bool(kind: Any) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.width == 1
