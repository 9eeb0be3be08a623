"""Integer constants are in the range of their type, or refused; types are as wide as numbers need."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from shardpass.ir.context import make_context
from shardpass.ir.integers import OutOfRange, greatest, integer, least, numbers
from shardpass.ir.tensors import splat, splat_text
from shardpass.ir.walk import operation

RANGES = [
    ("i1", 0, 1), ("i4", -8, 7), ("ui4", 0, 15), ("i8", -128, 127), ("ui8", 0, 255), ("i32", -(2**31), 2**31 - 1),
    ("ui32", 0, 2**32 - 1), ("i64", -(2**63), 2**63 - 1), ("ui64", 0, 2**64 - 1),
]  # fmt: skip


@pytest.mark.parametrize(("element", "low", "high"), RANGES)
@pytest.mark.parametrize("build", [integer, splat])
def test_constants(element, low, high, build):
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        kind = ir.Type.parse(f"tensor<3x{element}>")
        assert (least(kind.element_type), greatest(kind.element_type)) == (low, high)
        with ir.InsertionPoint(module.body):
            for number in (low, high, 1):
                text = splat_text(operation(build(kind, number).owner))
                assert text == ({0: "false", 1: "true"}[number] if element == "i1" else str(number))
            for number in (low - 1, high + 1, high + 2**64):
                with pytest.raises(OutOfRange, match=rf"{number} is no {element}"):
                    build(kind, number)


@pytest.mark.parametrize(("bound", "width"), [(0, 32), (2**31 - 1, 32), (2**31, 64), (2**63 - 1, 64)])
def test_the_narrowest_type_that_holds_a_bound(bound, width):
    with make_context(), ir.Location.unknown():
        assert numbers(bound, (2, 3)) == ir.Type.parse(f"tensor<2x3xi{width}>")


def test_no_type_holds_more():
    with make_context(), pytest.raises(OutOfRange, match=str(2**63)):
        numbers(2**63)
