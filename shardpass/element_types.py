"""The element types of StableHLO: how each is written, how wide it is, and its NumPy counterpart.

One row a type. ``element_type`` accepts MLIR's spelling (``f32``, ``i32``, ``ui8``, ``i1``,
``complex<f32>``, ``f8E4M3FN``), HLO's (``f32``, ``s32``, ``u8``, ``pred``, ``c64``, ``f8e4m3fn``) and NumPy's
(``float32``, ``int32``, ``uint8``, ``bool``, ``complex64``, ``float8_e4m3fn``).
Sources: StableHLO specification, "Types"; XLA's ``PrimitiveType`` names.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type of StableHLO. ``bits`` is the width in a packed array; ``i1`` takes a byte, as XLA stores it.

    ``dtype`` is None where neither NumPy nor ml_dtypes has the type.
    """

    mlir: str
    hlo: str
    bits: int
    dtype: np.dtype[np.generic] | None

    def bytes(self, elements: int) -> int:
        """Return the bytes of a packed array of ``elements`` elements, rounded up."""
        return -(-elements * self.bits // 8)

    def __str__(self) -> str:
        return self.mlir


def _row(mlir: str, hlo: str, bits: int, dtype: DTypeLike | str | None) -> ElementType:
    if isinstance(dtype, str):  # a name that not every ml_dtypes has
        dtype = getattr(ml_dtypes, dtype, None)
    return ElementType(mlir, hlo, bits, None if dtype is None else np.dtype(dtype))


ELEMENT_TYPES: tuple[ElementType, ...] = (
    _row("i1", "pred", 8, np.bool_),
    _row("i2", "s2", 2, "int2"),
    _row("i4", "s4", 4, "int4"),
    _row("i8", "s8", 8, np.int8),
    _row("i16", "s16", 16, np.int16),
    _row("i32", "s32", 32, np.int32),
    _row("i64", "s64", 64, np.int64),
    _row("ui2", "u2", 2, "uint2"),
    _row("ui4", "u4", 4, "uint4"),
    _row("ui8", "u8", 8, np.uint8),
    _row("ui16", "u16", 16, np.uint16),
    _row("ui32", "u32", 32, np.uint32),
    _row("ui64", "u64", 64, np.uint64),
    _row("f4E2M1FN", "f4e2m1fn", 4, "float4_e2m1fn"),
    _row("f8E3M4", "f8e3m4", 8, "float8_e3m4"),
    _row("f8E4M3", "f8e4m3", 8, "float8_e4m3"),
    _row("f8E4M3FN", "f8e4m3fn", 8, "float8_e4m3fn"),
    _row("f8E4M3FNUZ", "f8e4m3fnuz", 8, "float8_e4m3fnuz"),
    _row("f8E4M3B11FNUZ", "f8e4m3b11fnuz", 8, "float8_e4m3b11fnuz"),
    _row("f8E5M2", "f8e5m2", 8, "float8_e5m2"),
    _row("f8E5M2FNUZ", "f8e5m2fnuz", 8, "float8_e5m2fnuz"),
    _row("f8E8M0FNU", "f8e8m0fnu", 8, "float8_e8m0fnu"),
    _row("bf16", "bf16", 16, "bfloat16"),
    _row("f16", "f16", 16, np.float16),
    _row("f32", "f32", 32, np.float32),
    _row("f64", "f64", 64, np.float64),
    _row("complex<f32>", "c64", 64, np.complex64),
    _row("complex<f64>", "c128", 128, np.complex128),
)

_BY_NAME = {row.dtype.name: row for row in ELEMENT_TYPES if row.dtype is not None}
_BY_NAME |= {name: row for row in ELEMENT_TYPES for name in (row.mlir, row.hlo, row.mlir.lower())}


def element_type(name: str) -> ElementType:
    """Return the element type called ``name`` in MLIR's, HLO's or NumPy's spelling. Raises KeyError for any
    other name.
    """
    return _BY_NAME[name]
