"""How far results are apart: one measure for the tests and the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = (
    1e-3  # a result whose greatest magnitude is below this (a gradient that is zero but for rounding) is held to this
)


def difference(found: Any, expected: Any) -> float:
    """Of one result. Floats: greatest difference over the greatest finite magnitude; NaN and infinities where due.

    Others, and shapes and element types: 0.0 where equal, infinite where not.
    """
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if b.dtype.kind not in "fc":
        return 0.0 if np.array_equal(a, b) else float("inf")
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    gap = np.abs(a[finite].astype(wide) - b[finite].astype(wide)).max(initial=0.0)
    return float(gap / max(float(np.abs(b[finite]).max(initial=0.0)), LEAST))


def differences(found: Sequence[Any], expected: Sequence[Any]) -> list[float]:
    """Of each result. Raises ValueError where their numbers differ."""
    return [difference(a, b) for a, b in zip(found, expected, strict=True)]
