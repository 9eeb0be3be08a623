"""Operands in another order, and constants that change nothing: by boxes, on tiles too large for a walk by elements."""

import pytest
from support.pairs import Pair, Side, reduced, same, summed

from shardpass.proving import prove

KIND, TILE = "tensor<4096x512xf32>", "tensor<2048x512xf32>"
BOUNDARY = (
    f' {{mhlo.sharding = "{{manual}}", shardpass.global_type = {KIND}, shardpass.sharding = "{{devices=[2,1]<=[2]}}"}}'
)


def program(line, kind=KIND, boundary="", number="0.0"):
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: {kind}{boundary}, %y: {kind}{boundary}) -> ({kind}{boundary}) {{
    %c = stablehlo.constant dense<{number}> : {kind}
    %r = stablehlo.{line} : {kind}
    return %r : {kind}
  }}
}}"""


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
def test_the_order_of_operands_is_open(name):
    assert prove(program(f"{name} %x, %y"), program(f"{name} %y, %x", TILE, BOUNDARY), refute=False).proved


@pytest.mark.parametrize("name", ["subtract", "divide", "power", "atan2", "remainder"])
def test_the_order_of_others_is_not(name):
    assert not prove(program(f"{name} %x, %y"), program(f"{name} %y, %x", TILE, BOUNDARY), refute=False).proved


@pytest.mark.parametrize(
    ("name", "number"),
    [("add", "0.0"), ("add", "-0.0"), ("multiply", "1.0"), ("maximum", "0xFF800000"), ("minimum", "0x7F800000")],
)
def test_an_identity_changes_nothing(name, number):
    whole = program("add %x, %y")
    for line in (f"{name} %t, %c", f"{name} %c, %t"):
        text = program(f"add %x, %y : {TILE}\n    %q = stablehlo.{line}", TILE, BOUNDARY, number)
        text = text.replace("%r = ", "%t = ").replace("%q = ", "%r = ")
        assert prove(whole, text, refute=False).proved
        other = text.replace(number, "0.5")
        assert not prove(whole, other, refute=False).proved


@pytest.mark.parametrize(("rows", "kind", "init"), [(1, "i32", "0"), (1, "f32", "-0.0"), (2, "i32", "0")])
def test_a_sum_over_devices_of_one_row_each(rows, kind, init):
    """Rows that no device reduces: they are all rows only where each device has one."""
    n = 2**20  # more than are proved element by element
    row = f"""  %s = stablehlo.slice %x [0:1, 0:{n}] : (tensor<{rows}x{n}x{kind}>) -> tensor<1x{n}x{kind}>
  %p = stablehlo.reshape %s : (tensor<1x{n}x{kind}>) -> tensor<{n}x{kind}>
"""
    arguments = [Side(f"{rows}x{n}x{kind}", f"{2 * rows}x{n}x{kind}", "{devices=[2,1]<=[2]}")]
    whole = reduced("r", "x", f"{2 * rows}x{n}x{kind}", f"{n}x{kind}", init)
    pair = Pair(arguments, same(f"{n}x{kind}"), whole, row + summed("r", "p", f"{n}x{kind}"))
    assert prove(pair.whole, pair.local, refute=False, strict=True).proved is (rows == 1)
