"""Compute integers that are known before the program runs: constants, arithmetic on them and on ``partition_id``.

Problem. ``jax.lax.axis_index('i')`` is ``partition_id / 2 rem 4``: it varies over one axis of the mesh, and an analysis
that only unites what operands vary over says "over all". So small integer and boolean arrays that follow from constants
and device numbers are computed, once for each device, with NumPy: affine arithmetic, masks, tables of device numbers.

State: a value is ``[devices, *shape]``, or ``[1, *shape]`` where all devices hold the same. None is "not known", which
is always correct: for more than ``MOST`` elements, other types, and ops without a row here. The prover has an evaluator
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from shardpass.element_types import element_type
from shardpass.ir.tensors import enum_word, ints, shape_of, splat_text
from shardpass.ir.walk import operation

Known = npt.NDArray[Any]
MOST = 2**20  # elements, of all devices together
FEW = 64  # elements of positions
_BOOLEANS = {"true": 1, "false": 0}
_COMPOSED = ("stablehlo.reshape", "stablehlo.convert", "stablehlo.concatenate", "stablehlo.broadcast_in_dim")

Rule = Callable[[Any, Sequence[Known]], Known]


def compute(op: Any, operands: Sequence[Known | None], devices: int) -> Known | None:
    """Compute the single result of ``op`` on each device; None if it cannot be computed before the program runs."""
    rule = _SOURCES.get(op.name)
    if rule is None and (not operands or any(value is None for value in operands)):
        return None
    dtype = _dtype(op.results[0].type) if len(op.results) == 1 else None
    if dtype is None or devices * prod(shape_of(op.results[0])) > MOST:
        return None
    if rule is not None:
        values = rule(op, devices)
        return None if values is None else values.astype(dtype)
    computed = _ELEMENTWISE.get(op.name) or _MOVES.get(op.name)
    if computed is None:
        return None
    try:
        with np.errstate(over="ignore"):
            return np.asarray(computed(op, [value for value in operands if value is not None])).astype(dtype)
    except (ArithmeticError, TypeError, ValueError):  # a quotient by zero; what NumPy has no booleans for
        return None


def known_integers(value: Any) -> npt.NDArray[np.int64] | None:
    """Evaluate the elements of an integer ``value``; None if they are unknown or more than ``FEW``.

    Follows constants through broadcasts, reshapes, conversions and concatenates. O(ops followed).
    """
    known = _followed(value)
    if known is None or (known.dtype.kind == "u" and known.size and int(known.max()) >= 1 << 63):
        return None  # no signed integer of 64 bits
    return np.asarray(known[0], np.int64)


def _followed(value: Any) -> Known | None:
    is_integer = isinstance(value.type.element_type, ir.IntegerType)
    if isinstance(value.owner, ir.Block) or not is_integer or prod(shape_of(value)) > FEW:
        return None
    op = operation(value.owner)
    if op.name == "stablehlo.constant" or op.name in _COMPOSED:
        return compute(op, [_followed(operand) for operand in op.operands], 1)
    return None


def _dtype(kind: Any) -> np.dtype[Any] | None:
    if not isinstance(kind, ir.RankedTensorType):
        return None
    dtype = element_type(str(kind.element_type)).dtype
    return dtype if dtype is not None and dtype.kind in "iub" else None


# ------------------------------------------------------------------------------------- sources


def integers_of(op: Any) -> npt.NDArray[Any] | None:
    """Return the elements of a ``stablehlo.constant`` of integers or booleans, as 0 and 1; else None.

    None also where the elements stand beside the module.
    """
    kind = op.results[0].type
    if not isinstance(kind.element_type, ir.IntegerType):
        return None
    text, shape = splat_text(op), tuple(kind.shape)
    try:
        if text is not None:
            return np.full(shape, _BOOLEANS[text] if text in _BOOLEANS else int(text, 0))
        return np.array(op.attributes["value"]).reshape(shape)
    except (TypeError, ValueError, OverflowError):
        return None


def _constant(op: Any, devices: int) -> Known | None:
    numbers = integers_of(op)
    return None if numbers is None else numbers[None]


_SOURCES: Mapping[str, Callable[[Any, int], Known | None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.partition_id": lambda op, devices: np.arange(devices),
    "stablehlo.replica_id": lambda op, devices: np.zeros(1, np.int64),  # a partitioned program has one replica
    "stablehlo.iota": lambda op, devices: _iota(op),
}


def _iota(op: Any) -> Known:
    shape = shape_of(op.results[0])
    along = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    view = [size if dim == along else 1 for dim, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[along]).reshape(view), shape)[None]


# ------------------------------------------------------------------------------------- element by element


def _quotient(a: Known, b: Known) -> Known:
    """Divide, rounding to zero. Raises ZeroDivisionError: the result of division by 0 depends on the machine."""
    if (b == 0).any():
        raise ZeroDivisionError
    return np.abs(a) // np.abs(b) * (np.sign(a) * np.sign(b)) if a.dtype.kind == "i" else a // b


def _compare(op: Any, values: Sequence[Known]) -> Known:
    direction = enum_word(op.attributes["comparison_direction"])
    return np.asarray(_DIRECTIONS[direction](*values))


_DIRECTIONS: Mapping[str, Any] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _binary(function: Any) -> Rule:
    return lambda op, values: function(values[0], values[1])


def _select(op: Any, values: Sequence[Known]) -> Known:
    which = values[0].reshape(values[0].shape + (1,) * (values[1].ndim - values[0].ndim))
    return np.where(which.astype(bool), values[1], values[2])


_ELEMENTWISE: Mapping[str, Rule] = {
    "stablehlo.add": _binary(np.add),
    "stablehlo.subtract": _binary(np.subtract),
    "stablehlo.multiply": _binary(np.multiply),
    "stablehlo.divide": _binary(_quotient),
    "stablehlo.remainder": _binary(lambda a, b: a - _quotient(a, b) * b),
    "stablehlo.minimum": _binary(np.minimum),
    "stablehlo.maximum": _binary(np.maximum),
    "stablehlo.and": _binary(np.bitwise_and),
    "stablehlo.or": _binary(np.bitwise_or),
    "stablehlo.xor": _binary(np.bitwise_xor),
    "stablehlo.not": lambda op, values: np.asarray(np.invert(values[0])),
    "stablehlo.negate": lambda op, values: 0 - values[0],
    "stablehlo.sign": lambda op, values: np.asarray(np.sign(values[0])),
    "stablehlo.abs": lambda op, values: np.asarray(np.abs(values[0])),
    "stablehlo.convert": lambda op, values: values[0],
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": lambda op, values: np.minimum(np.maximum(values[1], values[0]), values[2]),
}


# ------------------------------------------------------------------------------------- shapes


def _reshape(op: Any, values: Sequence[Known]) -> Known:
    return values[0].reshape(values[0].shape[0], *shape_of(op.results[0]))


def _broadcast(op: Any, values: Sequence[Known]) -> Known:
    shape = shape_of(op.results[0])
    into = ints(op.attributes["broadcast_dimensions"])
    view = [1] * len(shape)
    for dim, size in zip(into, values[0].shape[1:], strict=True):
        view[dim] = size
    rows = values[0].shape[0]
    return np.broadcast_to(values[0].reshape(rows, *view), (rows, *shape))


def _slice(op: Any, values: Sequence[Known]) -> Known:
    bounds = (ints(op.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    return values[0][(slice(None), *(slice(*bound) for bound in zip(*bounds, strict=True)))]


def _dynamic_slice(op: Any, values: Sequence[Known]) -> Known:
    """Slice at each device's own start, clamped to the array as in StableHLO."""
    array, *starts = values
    sizes = ints(op.attributes["slice_sizes"])
    rows = max(value.shape[0] for value in values)
    out = np.empty((rows, *sizes), dtype=array.dtype)
    for row in range(rows):
        source = array[min(row, array.shape[0] - 1)]
        at = [int(start[min(row, start.shape[0] - 1)]) for start in starts]
        cut = [
            slice(k := max(0, min(a, n - size)), k + size) for a, n, size in zip(at, source.shape, sizes, strict=True)
        ]
        out[row] = source[tuple(cut)]
    return out


def _concatenate(op: Any, values: Sequence[Known]) -> Known:
    rows = max(value.shape[0] for value in values)
    parts = [np.broadcast_to(value, (rows, *value.shape[1:])) for value in values]
    return np.concatenate(parts, axis=1 + ir.IntegerAttr(op.attributes["dimension"]).value)


_MOVES: Mapping[str, Rule] = {
    "stablehlo.reshape": _reshape,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.concatenate": _concatenate,
}
