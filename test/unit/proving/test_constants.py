"""Constants that one program computes: the op of two, rounded once, is the constant that the other program has."""

import numpy as np
import pytest

from shardpass.proving import prove
from shardpass.proving.relations.elements import folded

BOUNDARY = ' {mhlo.sharding = "{manual}", shardpass.global_type = TYPE, shardpass.sharding = "{replicated}"}'
OPS = {"divide": np.divide, "add": np.add, "subtract": np.subtract, "multiply": np.multiply}


def program(kind, ops, boundary=""):
    side = f"tensor<4x{kind}>{boundary.replace('TYPE', f'tensor<4x{kind}>')}"
    return f"""module attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func @main(%x: {side}) -> ({side}) {{
{ops}
    %v = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<{kind}>) -> tensor<4x{kind}>
    %r = stablehlo.maximum %x, %v : tensor<4x{kind}>
    return %r : tensor<4x{kind}>
  }}
}}"""


def computed(kind, op, x, y):
    return program(
        kind,
        f"""    %a = stablehlo.constant dense<{x!r}> : tensor<{kind}>
    %n = stablehlo.negate %a : tensor<{kind}>
    %b = stablehlo.constant dense<{y!r}> : tensor<{kind}>
    %c = stablehlo.{op} %n, %b : tensor<{kind}>""",
    )


def written(kind, value):
    return program(kind, f"    %c = stablehlo.constant dense<{float(value)!r}> : tensor<{kind}>", BOUNDARY)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("x", "y"), [(1.0, 27.0), (3.5, -7.0), (2.0**23, 1.0)])
def test_the_constant_that_an_op_of_constants_is(kind, op, x, y):
    """And the next number beside it is not."""
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    value = OPS[op](-dtype(x), dtype(y))
    assert prove(computed(kind, op, x, y), written(kind, value), refute=False).proved
    other = np.nextafter(value, dtype(np.inf))
    assert not prove(computed(kind, op, x, y), written(kind, other), refute=False).proved


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("divide", ("1.0", "0.0")),  # no number
        ("multiply", ("1e-30", "1e-30")),  # below the normal numbers, which a machine may round to zero
        ("add", ("3.0e+38", "3.0e+38")),
        ("add", ("0x7FC00000", "1.0")),
        ("maximum", ("1.0", "2.0")),
        ("sqrt", ("-1.0",)),
        ("sqrt", ("1.0e-40",)),
    ],
)
def test_what_stays_an_op(op, operands):
    assert folded(op, "f32", [np.array(text) for text in operands]) is None
    assert folded("add", "bf16", [np.array("1.0"), np.array("1.0")]) is None


def test_zeros_of_both_signs_are_two():
    assert str(folded("negate", "f32", [np.array("0.0")])) == "-0.0"
    assert str(folded("add", "f32", [np.array("-0.0"), np.array("-0.0")])) == "-0.0"
