"""Add margins to a tile, for slices across the tile's border.

Everything here builds at the current insertion point and location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of, splat


def with_margins(value: Any, margins: Sequence[int], text: str) -> Any:
    """Pad ``value`` with ``margins[d]`` elements, all ``text``, on both sides of dimension d."""
    scalar = splat(retype(value.type, ()), text)
    none = i64_array([0] * len(margins))
    return hlo.pad(value, scalar, i64_array(margins), i64_array(margins), none)


def without_margins(value: Any, margins: Sequence[int]) -> Any:
    """Slice off the margins: the inverse of ``with_margins``."""
    high = [size - margin for size, margin in zip(shape_of(value), margins, strict=True)]
    return hlo.slice(value, i64_array(margins), i64_array(high), i64_array([1] * len(margins)))
