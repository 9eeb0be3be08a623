"""How much work the interpreter has with a program, counted by hand, and the programs that it is not asked about."""

import math

import numpy as np
import pytest

from shardpass.ir.context import parse_module
from shardpass.runtime.specification import MOST, NAME, specification_of, steps

ADD = "%0 = stablehlo.add %x, %x : tensor<4x6xf32>"
DOT = """%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %p = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.add %x, %x : tensor<4x6xf32>"""
LOOP = """%z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %0 = %x) : tensor<i32>, tensor<4x6xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
         %s = stablehlo.add %0, %0 : tensor<4x6xf32>
         stablehlo.return %j, %s : tensor<i32>, tensor<4x6xf32> }
  %0 = stablehlo.negate %r#1 : tensor<4x6xf32>"""


def program(body, more=""):
    return f"""module {{
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {{
  {body}
  return %0 : tensor<4x6xf32>
}}
{more}
}}"""


F = "func.func private @f(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {{ {} return %0 : tensor<4x6xf32> }}"
CALL = "{} = func.call @f({}) : (tensor<4x6xf32>) -> tensor<4x6xf32>"
RETURN = 24  # each return counts what it hands on
COUNTED = {
    "an op": (program(ADD), 24 + RETURN),
    "a product": (program(DOT), 24 + 4 * 6 * 4 + 24 + RETURN),
    "a loop": (program(LOOP), 3 + 6 * ((1 + 1) + (1 + 24 + RETURN)) + 24 + RETURN),
    "two calls": (
        program(CALL.format("%a", "%x") + CALL.format(" %0", "%a"), F.format(ADD)),
        2 * (24 + RETURN) + RETURN,
    ),
    "recursion": (program(CALL.format("%0", "%x"), F.format(CALL.format("%0", "%x"))), math.inf),
    "a custom call": (program("%0 = stablehlo.custom_call @f(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>"), math.inf),
    "narrow floats": (
        program(
            "%h = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xf16> "
            "%0 = stablehlo.convert %h : (tensor<4x6xf16>) -> tensor<4x6xf32>"
        ),
        math.inf,
    ),
}


@pytest.mark.parametrize(("text", "wanted"), COUNTED.values(), ids=COUNTED)
def test_steps_are_counted(text, wanted):
    assert steps(parse_module(text)) == pytest.approx(wanted)
    assert (specification_of(text) is None) == (wanted > MOST)


def test_a_program_runs_without_its_annotations():
    text = program(ADD).replace("%x: tensor<4x6xf32>", '%x: tensor<4x6xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}')
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    reference = specification_of(text)
    assert reference.name == NAME
    np.testing.assert_array_equal(reference.run([x])[0], 2 * x)


def test_manual_regions_are_not_for_one_device():
    body = """%s = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"}
    : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = stablehlo.add %s, %s : tensor<4x6xf32>"""
    assert specification_of(program(body)) is None


def test_what_a_scatter_writes_into_keeps_its_value() -> None:
    reference = specification_of("""
    func.func @main(%x: tensor<4xf32>, %u: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %i = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>
      %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %sum = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
      return %s, %x : tensor<4xf32>, tensor<4xf32>
    }""")
    assert reference is not None
    x = np.arange(4, dtype=np.float32)
    scattered, kept = reference.run([x, np.array([10, 20], np.float32)])
    np.testing.assert_array_equal(scattered, [0, 11, 2, 23])
    np.testing.assert_array_equal(kept, [0, 1, 2, 3])
