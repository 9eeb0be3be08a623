"""Evaluates integers that are known before a program runs: positions that JAX writes as expressions of constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from shardpass.ir.integers import least
from shardpass.ir.tensors import ints, shape_of, splat_text
from shardpass.ir.walk import operation

MOST = 64  # elements; positions are few
_BOOLEANS = {"true": 1, "false": 0}


def known_integers(value: Any) -> npt.NDArray[np.int64] | None:
    """Evaluate the elements of ``value``, of integers; None where they are unknown, or many.

    Follows constants through broadcasts, reshapes, conversions and concatenates. O(ops followed).
    """
    shape = shape_of(value)
    is_integer = isinstance(value.type.element_type, ir.IntegerType)
    if isinstance(value.owner, ir.Block) or not is_integer or int(np.prod(shape)) > MOST:
        return None
    op = operation(value.owner)
    if op.name == "stablehlo.constant":
        return _in_64_bits(integers_of(op))
    parts = [known_integers(operand) for operand in op.operands] if op.name in _COMPOSED else [None]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if op.name == "stablehlo.reshape":
        return known[0].reshape(shape)
    if op.name == "stablehlo.convert":
        return _converted(known[0], value.type.element_type)
    if op.name == "stablehlo.concatenate":
        return np.concatenate(known, ir.IntegerAttr(op.attributes["dimension"]).value)
    view = [1] * len(shape)
    for size, dim in zip(known[0].shape, ints(op.attributes["broadcast_dimensions"]), strict=True):
        view[dim] = size
    return np.array(np.broadcast_to(known[0].reshape(view), shape))


_COMPOSED = ("stablehlo.reshape", "stablehlo.convert", "stablehlo.concatenate", "stablehlo.broadcast_in_dim")


def _converted(numbers: npt.NDArray[np.int64], element: Any) -> npt.NDArray[np.int64] | None:
    """Convert ``numbers`` to the integer type ``element``: modulo 2**width; truth values as 0 and 1."""
    if element.width >= 64:
        return None if element.is_unsigned and (numbers < 0).any() else numbers
    low = least(element)
    wrapped = numbers != 0 if element.width == 1 else (numbers - low) % 2**element.width + low
    return np.asarray(wrapped, np.int64)


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


def _in_64_bits(values: npt.NDArray[Any] | None) -> npt.NDArray[np.int64] | None:
    """Convert to signed 64 bits; None for unsigned integers that do not fit."""
    if values is None or (values.dtype.kind == "u" and values.size and int(values.max()) >= 1 << 63):
        return None
    return values.astype(np.int64)
