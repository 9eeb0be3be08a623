"""Compare results, with a tolerance for each element type.

A result passes where integers and booleans are equal, and where for floats

    max |actual - wanted|  <=  tolerance(element type) * max |wanted|

over the finite elements, with NaN and infinities at the same places. (Where all that is wanted is zero, the
difference itself is compared with the tolerance.) A sum over devices adds in another order than a sum on one, so
small elements of a tensor carry an error of the size of the great ones; the tolerance is therefore of the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardpass.runtime.tiles import Array

# relative to the greatest magnitude; f32 is the project's promise, the others are as many roundings of the type
TOLERANCES = {
    "float64": 1e-13,
    "float32": 1e-5,
    "float16": 1e-2,
    "bfloat16": 4e-2,
    "complex128": 1e-13,
    "complex64": 1e-5,
}
COARSE = 0.25  # 8-bit floats and narrower: two or three bits of mantissa


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one result. ``scale``: max |wanted|. ``tolerance``: 0 if results must be equal."""

    index: int
    greatest: float
    scale: float
    tolerance: float
    passed: bool

    @property
    def relative(self) -> float:
        return self.greatest / self.scale if self.scale else self.greatest

    def within(self, times: float) -> Difference:
        """Return the same difference under ``times`` the tolerance."""
        tolerance = times * self.tolerance
        return replace(self, tolerance=tolerance, passed=self.passed or self.relative <= tolerance)

    def __str__(self) -> str:
        if self.tolerance == 0:
            return f"{self.greatest:g} (must be equal)"
        return f"{self.relative:.2g} of the greatest element ({self.greatest:.3g} of {self.scale:.3g})"


def compare(actual: Sequence[Any], wanted: Sequence[Any]) -> list[Difference]:
    """Return the difference of each result, in order."""
    return [
        difference(index, np.asarray(mine), np.asarray(theirs))
        for index, (mine, theirs) in enumerate(zip(actual, wanted, strict=True))
    ]


def difference(index: int, actual: Array, wanted: Array) -> Difference:
    if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
        return Difference(index, float("inf"), 0.0, 0.0, False)
    tolerance = tolerance_of(wanted.dtype)
    if tolerance == 0:
        # exact in Python's integers: int64 differences overflow
        apart = np.abs(actual.astype(object) - wanted.astype(object)) if actual.size else np.zeros(1)
        greatest = float(np.max(apart))
        return Difference(index, greatest, _scale(wanted.astype(np.float64)), 0.0, greatest == 0)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    mine, theirs = actual.astype(wide), wanted.astype(wide)
    finite = np.isfinite(theirs)
    same = bool(np.array_equal(mine[~finite], theirs[~finite], equal_nan=True) and np.isfinite(mine[finite]).all())
    if not same:
        return Difference(index, float("inf"), _scale(theirs[finite]), tolerance, False)
    greatest, scale = _scale(mine[finite] - theirs[finite]), _scale(theirs[finite])
    return Difference(index, greatest, scale, tolerance, greatest <= tolerance * (scale or 1.0))


def tolerance_of(dtype: Any) -> float:
    """Return the relative tolerance; 0 for integers and booleans."""
    if dtype.name in TOLERANCES:
        return TOLERANCES[dtype.name]
    return COARSE if dtype.name.startswith("float") else 0.0


def _scale(array: Array) -> float:
    return float(np.max(np.abs(array))) if array.size else 0.0
