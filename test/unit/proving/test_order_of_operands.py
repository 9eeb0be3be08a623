"""Operands in another order, and constants that change nothing: by boxes, on tiles too large for a walk by elements."""

import pytest

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
