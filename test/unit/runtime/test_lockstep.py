"""Devices that choose differently, in step: those that wait are named, with the op at which they wait.

Who waits follows by hand. Where nobody waits for certain the run gives no answer, and says so.
"""

import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.runtime import interpret
from test.unit.proving.pairs import all_reduce, local_text, side

VECTOR = side("tensor<4xf32>")
SIDES = [VECTOR, side("tensor<4xi32>", "tensor<1xi32>", "{devices=[4]<=[4]}")]
SUM = all_reduce("sum", "x0", groups="[[0, 1, 2, 3]]")
PAIRS = all_reduce("sum", "x0", groups="[[0, 1], [2, 3]]")
SAME = "%sum = stablehlo.add %x0, %x0 : tensor<4xf32>"
CALL = "%sum = func.call @f(%x0) : (tensor<4xf32>) -> tensor<4xf32>"
F = f"""  func.func private @f(%x0: tensor<4xf32>) -> tensor<4xf32> {{
    {SUM}
    return %sum : tensor<4xf32>
  }}"""


def case(*bodies):
    regions = ", ".join(f"{{\n      {body}\n      stablehlo.return %sum : tensor<4xf32>\n    }}" for body in bodies)
    return f"""    %k = stablehlo.reshape %x1 : (tensor<1xi32>) -> tensor<i32>
    %r = "stablehlo.case"(%k) ({regions}) : (tensor<i32>) -> tensor<4xf32>
    return %r : tensor<4xf32>"""


LOOP = f"""    %k = stablehlo.reshape %x1 : (tensor<1xi32>) -> tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %zero, %c = %x0) : tensor<i32>, tensor<4xf32>
     cond {{
      %again = stablehlo.compare LT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %one : tensor<i32>
      {all_reduce("sum", "c", groups="[[0, 1, 2, 3]]")}
      stablehlo.return %next, %sum : tensor<i32>, tensor<4xf32>
    }}
    return %l#1 : tensor<4xf32>"""
X = np.arange(4, dtype=np.float32)


def run(body, choices):
    text = local_text(body, SIDES, [VECTOR], F, devices=4)
    return interpret(text, X, np.array(choices, np.int32), isolated=False)[0]


@pytest.mark.parametrize(
    ("body", "choices", "waits"),
    [
        (case(SUM, SAME), [0, 0, 0, 1], "device 0 waits at stablehlo.all_reduce for device 3"),
        (case(SAME, SUM), [0, 1, 0, 1], "device 1 waits at stablehlo.all_reduce for device 0"),
        (case(SAME, CALL), [0, 0, 0, 1], "device 3 waits at stablehlo.all_reduce for device 0"),
        (case(SUM, PAIRS), [0, 0, 0, 1], "device 0 waits at stablehlo.all_reduce for device 3"),
        (case(PAIRS, SAME), [1, 1, 0, 1], "device 2 waits at stablehlo.all_reduce for device 3"),
        (LOOP, [2, 2, 3, 2], "device 2 waits at stablehlo.all_reduce for device 0, which leaves stablehlo.while"),
        (LOOP, [0, 1, 1, 1], "device 1 waits at stablehlo.all_reduce for device 0, which leaves stablehlo.while"),
    ],
)
def test_who_waits_for_whom(body, choices, waits):
    with pytest.raises(ShardpassError, match=waits) as error:
        run(body, choices)
    assert error.value.diagnostics[0].code == "SP541"


def test_devices_that_choose_alike_are_run():
    np.testing.assert_array_equal(run(case(SUM, SAME), [0] * 4), 4 * X)
    np.testing.assert_array_equal(run(case(SUM, SAME), [1, 2, 3, 7]), 2 * X)
    np.testing.assert_array_equal(run(LOOP, [2] * 4), 16 * X)


def test_groups_that_choose_alike_get_no_answer():
    """Devices 0 and 1 meet, and so do 2 and 3, so nobody waits; a run in step cannot follow both branches."""
    with pytest.raises(ShardpassError, match="SP540"):
        run(case(PAIRS, SAME), [0, 0, 1, 1])
