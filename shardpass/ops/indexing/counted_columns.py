"""Find columns of the indices of a gather or scatter that count 0, 1, 2, ... along a dimension.

``x[arange(n), labels]`` has two columns of indices, and the first column has the number of each row. The rows of x
and of the result are then split alike, as batching dimensions are: with x of 8 rows over x=4, device 2 has rows 4
and 5 of ``x`` and of ``labels``, and looks up only its own. This module follows such a column back to its ``iota``,
through the ops that JAX puts between the two (the wrapping of negative positions, broadcasts, conversions).

State: of each value one of three things is known, a count along one of its dimensions (``Count``), one number
everywhere (``Same``), or nothing (None). Cost: each op between the iota and the gather is read once for each column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.blocks import maker
from shardpass.ir.tensors import ints, shape_of, splat_text
from shardpass.ops.indexing.dimension_numbers import IndexedDims


@dataclass(frozen=True, slots=True)
class Count:
    """0, 1, 2, ... along dimension ``dim``."""

    dim: int


@dataclass(frozen=True, slots=True)
class Same:
    """A number that all elements have; booleans count as 0 or 1."""

    number: int


Known = Count | Same | None


def counted_dims(indices: Any, dims: IndexedDims, operand: Sequence[int], may_pair: Collection[int]) -> dict[int, int]:
    """Map dimensions of ``indices`` to the operand dimension whose column counts along them, from 0 to the end.

    ``operand``: the operand's shape. Only its dimensions in ``may_pair`` are looked at; dimensions of the indices that
    are batching dimensions already are left alone.
    """
    out: dict[int, int] = {}
    shape, paired = shape_of(indices), dims.paired()
    for column, dim in enumerate(dims.index_map):
        if dim not in may_pair or operand[dim] == 1:
            continue
        source = counted_dim(indices, dims.vector_dim, column)
        if source is not None and source not in paired and source not in out and shape[source] == operand[dim]:
            out[source] = dim
    return out


def counted_dim(indices: Any, vector_dim: int, column: int) -> int | None:
    """Find the dimension of ``indices`` along which ``column`` counts from 0; None if no such dimension is known."""
    shape = shape_of(indices)
    if vector_dim < len(shape) and shape[vector_dim] > 1:
        op = maker(indices)
        if op is None or op.name != "stablehlo.concatenate" or int(op.attributes["dimension"]) != vector_dim:
            return None
        for part in op.operands:
            width = shape_of(part)[vector_dim]
            if column < width:
                if width > 1:
                    return None
                indices = part
                break
            column -= width
    count = known(indices)
    return count.dim if isinstance(count, Count) and count.dim != vector_dim else None


def known(value: Any) -> Known:
    """Derive facts of an integer or truth value: Count, Same or None."""
    op = maker(value)
    if op is None or not isinstance(value.type.element_type, ir.IntegerType):
        return None
    name = op.name.removeprefix("stablehlo.")
    if name == "iota":
        return Count(int(op.attributes["iota_dimension"])) if _holds(value) else None
    if name == "constant":
        constant = splat_text(op) or ""
        text = {"false": "0", "true": "1"}.get(constant, constant)
        return Same(int(text)) if text.lstrip("-").isdigit() else None
    if name == "convert":
        count = known(op.operands[0])
        return count if isinstance(count, Count) and _holds(value) else None
    if name == "broadcast_in_dim":
        return _broadcast(op, value)
    if name == "reshape":
        return _reshaped(op, value)
    if name == "compare":
        return _compared(op)
    if name == "select":
        picked = known(op.operands[0])
        return known(op.operands[1 if picked.number else 2]) if isinstance(picked, Same) else None
    return None


def _holds(value: Any) -> bool:
    """Return whether the type of ``value`` can represent every count along its dimensions."""
    element = value.type.element_type
    return max(shape_of(value), default=0) <= int(2 ** (element.width - (0 if element.is_unsigned else 1)))


def _broadcast(op: Any, value: Any) -> Known:
    count = known(op.operands[0])
    if not isinstance(count, Count):
        return count
    target = ints(op.attributes["broadcast_dimensions"])[count.dim]
    kept = shape_of(op.operands[0])[count.dim] == shape_of(value)[target]
    return Count(target) if kept else None


def _reshaped(op: Any, value: Any) -> Known:
    """Keep the count through a reshape that only adds or drops dimensions of size 1."""
    count = known(op.operands[0])
    source, target = shape_of(op.operands[0]), shape_of(value)
    if not isinstance(count, Count):
        return count
    long = [d for d, n in enumerate(source) if n != 1]
    places = [d for d, n in enumerate(target) if n != 1]
    if count.dim not in long or [source[d] for d in long] != [target[d] for d in places]:
        return None
    return Count(places[long.index(count.dim)])


def _compared(op: Any) -> Known:
    """Evaluate the comparison of a count with a number that is not positive: a count is never negative."""
    left, right = known(op.operands[0]), known(op.operands[1])
    if not isinstance(left, Count) or not isinstance(right, Same) or right.number > 0:
        return None
    direction = str(op.attributes["comparison_direction"])
    if "LT" in direction:
        return Same(0)
    return Same(1) if "GE" in direction else None
