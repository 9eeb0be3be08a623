"""Convert positions along a split dimension from the whole array to a tile.

gather, scatter, dynamic_slice and dynamic_update_slice take positions in the whole array. In a tile that starts
at ``start`` the same place is ``position - start``. Positions come in any integer type, signed or not, and out of
range; they are brought into range in their own type first, so that no conversion wraps. From then on they are ``i32``,
or ``i64`` where the array is longer than 32 bits can count (``numbers``).

Everything here builds at the current insertion point and location.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import greatest
from shardpass.ir.integers import numbers as numbers
from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ir.tensors import splat as splat


def i32(shape: Sequence[int] = ()) -> Any:
    return ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(32))


def i1(shape: Sequence[int] = ()) -> Any:
    return ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(1))


def spread(scalar: Any, shape: Sequence[int]) -> Any:
    """Broadcast ``scalar`` to a tensor of ``shape``."""
    if not shape:
        return scalar
    return hlo.broadcast_in_dim(retype(scalar.type, shape), scalar, i64_array([]))


def compare(direction: str, left: Any, right: Any) -> Any:
    """Build ``left direction right`` of two integer tensors of one type."""
    element = left.type.element_type
    kind = "UNSIGNED" if element.is_unsigned or element.width == 1 else "SIGNED"
    direction_attr, kind_attr = hlo.ComparisonDirectionAttr.get(direction), hlo.ComparisonTypeAttr.get(kind)
    return hlo.compare(left, right, direction_attr, compare_type=kind_attr)


def in_range(position: Any, last: int) -> Any:
    """Clamp ``position`` to [0, last], in its own type. A type too narrow for ``last`` needs no upper bound."""
    upper = min(last, greatest(position.type.element_type))
    return hlo.clamp(splat(position.type, 0), position, splat(position.type, upper))


def converted(position: Any, kind: Any) -> Any:
    """Convert ``position`` to the element type of ``kind``."""
    wanted = retype(kind, shape_of(position))
    return position if position.type == wanted else hlo.convert(wanted, position)


def clamped(position: Any, last: int, kind: Any) -> Any:
    """Clamp ``position`` to [0, last], with the element type of ``kind``, which can represent ``last``."""
    return converted(in_range(position, last), kind)


def shifted(position: Any, by: Any) -> Any:
    """Build ``position - by``: a tensor and a scalar of one element type."""
    return hlo.subtract(position, spread(by, shape_of(position)))


def limited(position: Any, low: int, high: int) -> Any:
    """Clamp ``position`` to [low, high], which its type can represent."""
    return hlo.clamp(splat(position.type, low), position, splat(position.type, high))


def within(position: Any, count: int) -> Any:
    """Build an i1: whether 0 <= position < count, for a count that the type of ``position`` can represent."""
    at_least = compare("GE", position, splat(position.type, 0))
    return hlo.and_(at_least, compare("LT", position, splat(position.type, count)))


def every(conditions: Iterable[Any]) -> Any:
    """Build the conjunction of i1 tensors of one shape; None for no tensors. Consumes ``conditions`` one by one."""
    out = None
    for condition in conditions:
        out = condition if out is None else hlo.and_(out, condition)
    return out


def components(indices: Any, vector_dim: int) -> list[Any]:
    """Split gather's and scatter's indices into columns, each without the dimension of the index vector."""
    shape = shape_of(indices)
    if vector_dim == len(shape):
        return [indices]
    rest = shape[:vector_dim] + shape[vector_dim + 1 :]
    out = []
    for c in range(shape[vector_dim]):
        low, high = [0] * len(shape), list(shape)
        low[vector_dim], high[vector_dim] = c, c + 1
        column = hlo.slice(indices, i64_array(low), i64_array(high), i64_array([1] * len(shape)))
        out.append(hlo.reshape(retype(indices.type, rest), column))
    return out


def joined(columns: Sequence[Any], vector_dim: int) -> Any:
    """Concatenate columns of one shape and type at ``vector_dim``: the inverse of ``components``."""
    shape = shape_of(columns[0])
    if vector_dim == len(shape) and len(columns) == 1:
        return columns[0]  # the implicit index vector of length 1; with an explicit one the shape is the same but for 1
    column_type = retype(columns[0].type, (*shape[:vector_dim], 1, *shape[vector_dim:]))
    parts = [hlo.reshape(column_type, column) for column in columns]
    return parts[0] if len(parts) == 1 else hlo.concatenate(parts, vector_dim)


def nothing_text(element: Any) -> str:
    """Return the identity of addition, which is -0.0 for floats: -0.0 + 0.0 would be 0.0."""
    if isinstance(element, ir.ComplexType):
        return "(-0.0, -0.0)"
    if isinstance(element, ir.IntegerType):
        return "false" if element.width == 1 else "0"
    return "-0.0"


def adder(element: Any) -> str:
    """Return the reduction that combines an element on one device with ``nothing_text`` on the others; "" if there
    is none.
    """
    if isinstance(element, ir.IntegerType):
        return "or" if element.width == 1 else "add"
    return "add" if str(element) in EXACT_ADDERS else ""


EXACT_ADDERS = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "complex<f32>", "complex<f64>")
