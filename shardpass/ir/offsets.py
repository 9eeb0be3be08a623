"""Builds, in StableHLO, a number that depends on the device.

``device_value(table)`` emits a scalar that is ``table[d]`` on device d: by arithmetic on ``partition_id`` where the
table is a sum of ``c * (id / stride % size)`` terms (every table over a mesh in device order is), by a constant table
and a ``dynamic_slice`` where it is not (device orders of their own).

Digits are unsigned: XLA's CPU client divides within the loop that reads from such an offset, and a signed division by
a power of two takes comparisons and selects there, an unsigned one a shift (a slice of 4.5 MB takes a fifth longer).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import check_range, integer, numbers


@dataclass(frozen=True, slots=True)
class OffsetTerm:
    """One summand of a device's offset: ``factor * (id // stride % size)``."""

    factor: int
    stride: int
    size: int


def affine_terms(table: np.ndarray) -> tuple[int, tuple[OffsetTerm, ...]] | None:
    """Decompose ``table`` into a constant and mixed-radix terms, minor digit first; None if that is impossible.

    Greedy from the minor side: the longest run that is linear and repeats with a shift is one digit. O(n log n);
    kept for the tables seen last, as the values of a program share theirs.
    """
    return _terms(np.ascontiguousarray(table, np.int64).tobytes())


@lru_cache(maxsize=256)
def _terms(table: bytes) -> tuple[int, tuple[OffsetTerm, ...]] | None:
    rest = np.frombuffer(table, np.int64)
    base, stride, terms = int(rest[0]), 1, []
    while rest.size > 1:
        size = _linear_digit(rest)
        if size == 1:
            return None
        step = int(rest[1] - rest[0])
        if step:
            terms.append(OffsetTerm(step, stride, size))
        rest, stride = rest[::size], stride * size
    return base, tuple(terms)


def _linear_digit(values: np.ndarray) -> int:
    """Find the largest divisor s of len(values) with values[j*s + i] == values[j*s] + i * step for i < s."""
    step = values[1] - values[0]
    breaks = np.flatnonzero(np.diff(values) != step)
    longest = int(breaks[0]) + 1 if breaks.size else values.size  # no digit reaches past the first break
    for size in range(longest, 1, -1):
        if values.size % size == 0:
            rows = values.reshape(-1, size)
            if np.array_equal(rows, rows[:, :1] + step * np.arange(size)):
                return size
    return 1


def device_value(table: np.ndarray, kind: Any = None) -> Any:
    """Build a scalar that is ``table[d]`` on device d, at the current insertion point and location.

    ``kind``: its type; by default the narrowest of ``numbers`` that holds all that is computed.
    """
    affine = affine_terms(table)
    base, terms = affine if affine is not None else (0, ())
    computed = [base, int(table.min()), int(table.max()), *(term.factor * (term.size - 1) for term in terms)]
    bound = max(map(abs, computed))
    kind = numbers(bound) if kind is None else kind
    check_range(bound, kind.element_type)
    if affine is not None and not terms:
        return integer(kind, base)
    device = hlo.partition_id()
    if affine is None:
        return _looked_up(table, hlo.convert(numbers(len(table)), device), kind)
    total = integer(kind, base) if base else None
    for term in terms:
        digit = device
        if term.stride > 1:
            digit = hlo.divide(digit, integer(device.type, term.stride))
        if term.stride * term.size < len(table):
            digit = hlo.remainder(digit, integer(device.type, term.size))
        digit = hlo.convert(kind, digit)
        if term.factor != 1:
            digit = hlo.multiply(digit, integer(kind, term.factor))
        total = digit if total is None else hlo.add(total, digit)
    return total


def _looked_up(table: np.ndarray, device: Any, kind: Any) -> Any:
    whole = hlo.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(table, f"int{kind.element_type.width}")))
    one = hlo.dynamic_slice(whole, [device], [1])
    return hlo.reshape(kind, one)
