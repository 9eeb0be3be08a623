"""The padding of uneven tiles is overwritten where an op would take it in.

A dimension that does not divide is padded at its end, and the padding holds arbitrary numbers. Where an op joins
elements along such a dimension (a contraction, a reduction), the padding is first set to the combiner's identity.
``f32[5]`` over x=4 has tiles of 2 elements: device 2 holds element 4 and one of padding, device 3 only padding; before
a sum these three places become 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import ElementType
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import shape_of, splat
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.positions import compare, i32, spread

# The identities of maximum and minimum, of the floating-point types whose infinities can be written.
INFINITIES = {
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f16": ("0xFC00", "0x7C00"),
    "bf16": ("0xFF80", "0x7F80"),
}


def identity_text(combiner: str, element: Any) -> str | None:
    """The combiner's identity as MLIR writes a constant of type ``element``; None where it has none."""
    name = str(element)
    if combiner in ("add", "or"):
        return {"i1": "false"}.get(name, "(0.0, 0.0)" if name.startswith("complex") else _number(element, 0))
    if combiner in ("multiply", "and"):
        return {"i1": "true"}.get(name, "(1.0, 0.0)" if name.startswith("complex") else _number(element, 1))
    if isinstance(element, ir.IntegerType):
        width, unsigned = element.width, element.is_unsigned
        low = 0 if unsigned else -(2 ** (width - 1))
        high = 2**width - 1 if unsigned else 2 ** (width - 1) - 1
        return str(low if combiner == "maximum" else high)
    return INFINITIES[name][combiner == "minimum"] if name in INFINITIES else None


def has_identity(combiner: str, element: ElementType) -> bool:
    """Whether ``identity_text`` has an answer, for who has no MLIR type at hand."""
    if combiner not in ("maximum", "minimum"):
        return True
    return element.mlir in INFINITIES or element.mlir.lstrip("u").startswith("i")


def _number(element: Any, value: int) -> str:
    return str(value) if isinstance(element, ir.IntegerType) else f"{value}.0"


def mask(value: Any, dim: int, size: int, axes: Axes, mesh: PrimeMesh, combiner: str) -> Any:
    """``value`` (a tile) with the elements beyond ``size`` along ``dim`` set to the combiner's identity.

    Built at the current insertion point and location; ``axes`` split the dimension.
    """
    shape = shape_of(value)
    left = hlo.subtract(splat(i32(), size), device_value(mesh.index(axes) * np.int64(shape[dim])))
    inside = compare("LT", hlo.iota(i32(shape), dim), spread(left, shape))
    text = identity_text(combiner, value.type.element_type)
    return hlo.select(inside, value, splat(value.type, str(text)))
