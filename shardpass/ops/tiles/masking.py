"""Overwrite the padding of uneven tiles before an op that would combine it with elements.

A dimension that does not divide is padded at its end, and the padding is arbitrary numbers. Where an op joins
elements along such a dimension (a contraction, a reduction), the padding is first set to the combiner's identity.
``f32[5]`` over x=4 has tiles of 2 elements: device 2 has element 4 and one of padding, device 3 only padding; before
a sum these three places become 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import ElementType
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import retype, shape_of, splat
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.positions import compare, converted, limited, numbers, spread

# The identities of maximum and minimum, of the floating-point types whose infinities can be written.
INFINITIES = {
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f16": ("0xFC00", "0x7C00"),
    "bf16": ("0xFF80", "0x7F80"),
}


WITHOUT_ZERO = ("f8E8M0FNU",)  # powers of two alone


def identity_text(combiner: str, element: Any) -> str | None:
    """Return the combiner's identity as MLIR writes it for the type ``element``; None if there is no identity."""
    return _identity(combiner, str(element))


def has_identity(combiner: str, element: ElementType) -> bool:
    """Return whether the combiner has an identity (``identity_text``), for callers without an MLIR type."""
    return _identity(combiner, element.mlir) is not None


@lru_cache(maxsize=256)
def _identity(combiner: str, name: str) -> str | None:
    if match := re.fullmatch(r"(u?)i(\d+)", name):
        return _of_integers(combiner, int(match[2]), bool(match[1]))
    if combiner in ("maximum", "minimum"):
        return INFINITIES[name][combiner == "minimum"] if name in INFINITIES else None
    if combiner not in ("add", "multiply") or (combiner == "add" and name in WITHOUT_ZERO):
        return None
    number = "0.0" if combiner == "add" else "1.0"
    return f"({number}, 0.0)" if name.startswith("complex") else number


def _of_integers(combiner: str, width: int, unsigned: bool) -> str | None:
    """Return the identity for integers; truth values, of width 1, are 0 and 1."""
    low, high = (0, 2**width - 1) if unsigned or width == 1 else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    ones = high if low == 0 else -1
    identities = {"add": 0, "or": 0, "multiply": 1, "and": ones, "maximum": low, "minimum": high}
    number = identities.get(combiner)
    return None if number is None else str(number) if width > 1 else ("false", "true")[number]


def real(shape: Sequence[int], dim: int, size: int, axes: Axes, mesh: PrimeMesh) -> Any:
    """Build an i1 of ``shape``, that of a tile: whether an element is inside the array of ``size`` along ``dim``.

    Elements are counted within the tile: ``size`` may be a number of 64 bits where the tile's is one of 32.
    Built at the current insertion point and location; ``axes`` split the dimension.
    """
    tile = shape[dim]
    kind, own = numbers(max(size, (mesh.count(axes) - 1) * tile)), numbers(tile)
    left = hlo.subtract(splat(kind, size), device_value(mesh.index(axes) * np.int64(tile), kind))
    if kind != own:
        left = converted(limited(left, 0, tile), own)
    return compare("LT", hlo.iota(retype(own, shape), dim), spread(left, shape))


def mask(value: Any, dim: int, size: int, axes: Axes, mesh: PrimeMesh, combiner: str) -> Any:
    """Set the elements of ``value`` (a tile) beyond ``size`` along ``dim`` to the combiner's identity.

    Built at the current insertion point and location; ``axes`` split the dimension.
    """
    inside = real(shape_of(value), dim, size, axes, mesh)
    text = identity_text(combiner, value.type.element_type)
    return hlo.select(inside, value, splat(value.type, str(text)))
