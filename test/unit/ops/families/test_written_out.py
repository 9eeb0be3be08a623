"""Ops that are written in others before propagation: equal to XLA on one device and to NumPy; nothing is whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.diagnostics import Diagnostic
from shardpass.ir.context import parse_module
from shardpass.ops.families.written_out import STRETCHING
from shardpass.runtime import interpret

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(29)
HEAD = "module attributes {mhlo.num_partitions = 4 : i32} {\n"


def codes(found: list[Diagnostic]) -> list[str]:
    return [d.code for d in found]


REFERENCE: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "atan2": np.arctan2,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "power": np.power,
    "remainder": np.fmod,
    "subtract": np.subtract,
    "next_after": np.nextafter,
    "complex": lambda a, b: (a + 1j * b).astype(np.complex64),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda a, b: (a.astype(np.uint32) >> b.astype(np.uint32)).astype(np.int32),
    "compare": np.less,
}
INTEGERS = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")


@pytest.mark.parametrize("name", [*REFERENCE, "polygamma", "zeta"])
def test_operands_are_stretched(name: str) -> None:
    """A column beside a matrix, and a row of lower rank; 6 does not divide by 4."""
    element = "i32" if name in INTEGERS else "f32"
    result = {"complex": "complex<f32>", "compare": "i1"}.get(name, element)
    compares = ", comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type FLOAT>"
    more = compares if name == "compare" else ""
    first, second = f"tensor<6x1x{element}>", f"tensor<5x{element}>"
    text = f"""{HEAD}
func.func @main(%a: {first} {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}, %b: {second}) -> tensor<6x5x{result}> {{
  %0 = "chlo.broadcast_{name}"(%a, %b) {{broadcast_dimensions = array<i64: 1>{more}}}
      : ({first}, {second}) -> tensor<6x5x{result}>
  return %0 : tensor<6x5x{result}>
}}
}}
"""
    numbers = (RNG.integers(1, 5, (6, 1)), RNG.integers(2, 5, 5))
    a, b = (n.astype(np.int32 if element == "i32" else np.float32) for n in numbers)
    seen = check_text(text, [a, b])
    assert not {"SP301"} & set(codes(seen.diagnostics))
    if name in REFERENCE:
        executable = shardpass.compile(seen.module)
        (found,) = executable(a, b)
        np.testing.assert_allclose(np.asarray(found), REFERENCE[name](a, b), rtol=1e-5)


def test_select_stretches_its_predicate() -> None:
    text = f"""{HEAD}
func.func @main(%p: tensor<6x1xi1>, %a: tensor<6x5xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}, %b: tensor<f32>)
    -> tensor<6x5xf32> {{
  %0 = "chlo.broadcast_select"(%p, %a, %b) : (tensor<6x1xi1>, tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}}
}}
"""
    p, a = RNG.integers(0, 2, (6, 1)).astype(bool), RNG.standard_normal((6, 5)).astype(np.float32)
    seen = check_text(text, [p, a, np.float32(7)])
    np.testing.assert_array_equal(
        np.asarray(shardpass.compile(seen.module)(p, a, np.float32(7))[0]), np.where(p, a, np.float32(7))
    )
    assert not {"SP301"} & set(codes(seen.diagnostics))


def test_every_stretching_op_of_chlo_is_written_out() -> None:
    from jaxlib.mlir.dialects import chlo

    names = {c.OPERATION_NAME for c in vars(chlo).values() if isinstance(c, type) and hasattr(c, "OPERATION_NAME")}
    known = set(STRETCHING)
    assert {n for n in names if n.startswith("chlo.broadcast_")} == known


def test_dot_is_split_along_what_it_contracts() -> None:
    text = f"""{HEAD}
func.func @main(%a: tensor<3x8xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}, %b: tensor<8xf32>)
    -> tensor<3xf32> {{
  %0 = stablehlo.dot %a, %b, precision = [HIGHEST, DEFAULT] : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}
}}
"""
    seen = check_text(text, interpreter=True)
    assert seen.kinds == ["all_reduce"]
    assert "HIGHEST, DEFAULT" in str(seen.module)


def test_new_dimensions_of_a_broadcast_come_first() -> None:
    text = f"""{HEAD}
func.func @main(%a: tensor<5x2xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}) -> tensor<3x5x2xf32> {{
  %0 = stablehlo.broadcast %a, sizes = [3] : (tensor<5x2xf32>) -> tensor<3x5x2xf32>
  return %0 : tensor<3x5x2xf32>
}}
}}
"""
    a = RNG.standard_normal((5, 2)).astype(np.float32)
    (found,) = interpret(shardpass.run_pipeline(text, "partition"), a)
    np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(a, (3, 5, 2)))


SELECT = """
func.func @main(%x: tensor<4x9x5xf32> {{mhlo.sharding = "{split}"}}, %i: tensor<{index}xi32>)
    -> tensor<{result}xf32> {{
  %0 = "stablehlo.torch_index_select"(%x, %i) <{{batch_dims = {batch} : i64, dim = {dim} : i64}}>
      : (tensor<4x9x5xf32>, tensor<{index}xi32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}
"""


def selected(x: np.ndarray, index: np.ndarray, dim: int, batch: int) -> np.ndarray:
    if batch:
        return np.stack([selected(a, i, dim - 1, batch - 1) for a, i in zip(x, index, strict=True)])
    return np.take(x, index, axis=dim)


@pytest.mark.parametrize("split", ["{devices=[1,4,1]<=[4]}", "{devices=[4,1,1]<=[4]}", "{devices=[2,1,2]<=[4]}"])
@pytest.mark.parametrize(
    ("dim", "batch", "index"),
    [(0, 0, (3, 2)), (1, 0, (6,)), (1, 0, ()), (2, 0, (2, 2)), (1, 1, (4, 3)), (2, 1, (4, 3))],
)
def test_torch_index_select(split: str, dim: int, batch: int, index: tuple[int, ...]) -> None:
    x = RNG.standard_normal((4, 9, 5)).astype(np.float32)
    i = RNG.integers(0, x.shape[dim], index).astype(np.int32)
    expected = selected(x, i, dim, batch)
    shape = "x".join(map(str, index))
    result = "x".join(map(str, expected.shape))
    text = SELECT.format(split=split, dim=dim, batch=batch, index=shape, result=result).replace(
        "tensor<xi32>", "tensor<i32>"
    )
    module = shardpass.run_pipeline(HEAD + text + "}\n", "partition")
    (found,) = shardpass.compile(module)(x, i)
    np.testing.assert_array_equal(np.asarray(found), expected)
    (found,) = interpret(module, x, i)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_constant_of_chlo() -> None:
    text = """
func.func @main(%x: tensor<6xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<6xf32> {
  %0 = "chlo.constant"() {value = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<6xf32>} : () -> tensor<6xf32>
  %1 = stablehlo.add %x, %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}
"""
    x = np.ones(6, np.float32)
    seen = check_text(HEAD + text + "}\n", [x])
    np.testing.assert_array_equal(np.asarray(shardpass.compile(seen.module)(x)[0]), x + np.arange(6))


def test_what_the_user_wrote_on_the_op_stays() -> None:
    """A sharding on an op that is written out is a constraint on its result; locations are the op's."""
    text = """
func.func @main(%x: tensor<8x4xf32>, %y: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = "chlo.broadcast_add"(%x, %y) {broadcast_dimensions = array<i64: 1>, mhlo.sharding = "{devices=[4,1]<=[4]}"}
      : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> loc("model.py":12:3)
  return %0 : tensor<8x4xf32>
}
"""
    module = shardpass.run_pipeline(parse_module(HEAD + text + "}\n"), "import")
    printed = module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
    lines = [line for line in printed.splitlines() if "stablehlo." in line and "func" not in line]
    assert [line.split("stablehlo.")[1].split()[0] for line in lines] == ["broadcast_in_dim", "add", "custom_call"]
    assert all('"model.py":12:3' in line for line in lines)
    assert 'mhlo.sharding = "{devices=[4,1]0,1,2,3}"' in lines[-1] or "devices=[4,1]<=[4]" in lines[-1]
