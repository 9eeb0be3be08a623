"""The identities of combiners: neutral, by Python's numbers, for every element type that has one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.element_types import ELEMENT_TYPES, ElementType
from shardpass.ir.context import make_context
from shardpass.ir.tensors import splat
from shardpass.ops.reducers import COMBINERS
from shardpass.ops.tiles.masking import has_identity, identity_text

COMBINE = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}
FLOATS_WITH_ALL = ("f64", "f32", "f16", "bf16")


def number(text: str, element: ElementType) -> Any:
    """The number that MLIR reads ``text`` as: bits after 0x, else a decimal; the type has to hold the number."""
    assert element.dtype is not None
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x"):
        return float(np.array(int(text, 16), f"uint{element.bits}").view(element.dtype))
    if text.startswith("("):
        return complex(*map(float, text.strip("()").split(",")))
    found = float(text) if "." in text else int(text)
    assert type(found)(element.dtype.type(found)) == found
    return found


def samples(element: ElementType) -> list[Any]:
    """The ends of the type's range, and what lies between."""
    dtype = element.dtype
    assert dtype is not None
    if element.mlir == "i1":
        return [False, True]
    if element.mlir.lstrip("u").startswith("i"):
        info = ml_dtypes.iinfo(dtype)
        return [int(info.min), int(info.max), 0, 1, *([-1] if info.min < 0 else [])]
    if element.mlir.startswith("complex"):
        return [complex(-2.5, 7), 0j, complex(0, -1)]
    info = ml_dtypes.finfo(dtype)
    ends = [
        float(info.max),
        float(info.smallest_normal),
        *([] if element.mlir == "f8E8M0FNU" else [float(info.min), 0.0]),
    ]
    return ends + ([float("inf"), -float("inf")] if element.mlir in FLOATS_WITH_ALL else [])


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("element", [e for e in ELEMENT_TYPES if e.dtype is not None], ids=str)
def test_an_identity_changes_nothing(element: ElementType, combiner: str) -> None:
    with make_context(), ir.Location.unknown():
        module, kind = ir.Module.create(), ir.Type.parse(f"tensor<2x{element.mlir}>")
        text = identity_text(combiner, kind.element_type)
        if text is None:
            return  # test_which_identities_there_are has the list
        with ir.InsertionPoint(module.body):
            splat(kind, text)
        assert module.operation.verify()
    neutral = number(text, element)
    for value in samples(element):
        found = COMBINE[combiner](neutral, value)
        assert (bool(found) if element.mlir == "i1" else found) == value
        assert COMBINE[combiner](value, neutral) == found


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_which_identities_there_are(element: ElementType) -> None:
    """All of integers; of floats sums, products, and where infinities can be written the greatest and the least."""
    wanted = set(COMBINERS)
    if not element.mlir.lstrip("u").startswith("i"):
        wanted -= {"and", "or", *(() if element.mlir in FLOATS_WITH_ALL else ("maximum", "minimum"))}
    if element.mlir == "f8E8M0FNU":
        wanted -= {"add"}  # no zero
    with make_context():
        kind = ir.Type.parse(element.mlir)
        assert {c for c in COMBINERS if identity_text(c, kind) is not None} == wanted
        assert {c for c in COMBINERS if has_identity(c, element)} == wanted
