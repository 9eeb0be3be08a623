"""The values of small test programs: tensor types, what is known of a value, and arrays to run with.

The fuzzers and the rule prover build programs from these. Arrays hold small integers, in floats too, so that sums are
exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32,
    "ui64": np.uint64, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "complex<f32>": np.complex64,
}  # fmt: skip

FLOATS = ("f32", "f64", "bf16", "f16")

INTEGERS = ("i8", "i32", "i64", "ui8", "ui32", "ui64")

# greatest integer up to which every integer is exact
EXACT = {"bf16": 256, "f16": 2048, "f32": 2**24, "f64": 2**53, "complex<f32>": 2**22}


@dataclass(frozen=True, slots=True)
class Type:
    shape: tuple[int, ...]
    element: str

    def __str__(self) -> str:
        return f"tensor<{'x'.join([*map(str, self.shape), self.element])}>"

    @property
    def count(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value: its type, a bound of its magnitude, whether every element is exact.

    An infinite bound says that nothing is known: the value may be any, and is not compared.
    """

    type: Type
    bound: float = 3.0
    exact: bool = True


def numbers(generator: np.random.Generator, fact: Fact) -> Array:
    """An array of small integers that ``fact`` allows."""
    element, shape = fact.type.element, fact.type.shape
    dtype = np.dtype(DTYPES[element])
    high = int(min(3, fact.bound))
    if element == "i1":
        return generator.integers(0, 2, shape).astype(bool)
    low = 0 if element.startswith("ui") else -high
    found = generator.integers(low, high + 1, shape)
    if element.startswith("complex"):
        return (found + 1j * generator.integers(low, high + 1, shape)).astype(dtype)
    return np.asarray(found).astype(dtype)


def rubbish(fact: Fact) -> Any:
    """What is put into the padding of an argument: a correct program does not look at it."""
    if fact.type.element in FLOATS or fact.type.element.startswith("complex"):
        return np.nan
    return fact.type.element == "i1" or 113
