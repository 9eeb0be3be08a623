"""Programs that Shardy's own passes partition, run, against NumPy."""

import numpy as np
import pytest

from shardpass.runtime import compile
from shardpass.runtime.shardy_passes import shardy_module

PROGRAM = """
module @program attributes {{mhlo.num_partitions = 4 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{first}]>}},
                         %b: {second}) -> (tensor<{result}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{out}]>}}) {{
    {body}
    return %0 : tensor<{result}xf32>
  }}
}}
"""
A = np.arange(48, dtype=np.float32).reshape(8, 6) % 7 - 3


def ran(array, **parts):
    (found,) = compile(shardy_module(PROGRAM.format(**parts)))(A, array)
    return np.asarray(found)


@pytest.mark.parametrize(("first", "out"), [('{}, {"x"}', '{"y"}, {}'), ('{"x", "y"}, {}', '{"x"}, {"y"}')])
def test_a_product_in_a_function_of_its_own(first, out):
    """Arguments and results are split as main says, whatever the order of the axes; a square is CHLO's."""
    b = np.arange(24, dtype=np.float32).reshape(6, 4) % 5 - 2
    body = """%s = chlo.square %a : tensor<8x6xf32> -> tensor<8x6xf32>
    %0 = stablehlo.dot_general %s, %b, contracting_dims = [1] x [0]
      : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>"""
    found = ran(b, first=first, second="tensor<6x4xf32>", out=out, body=body, result="8x4")
    np.testing.assert_array_equal(found, (A * A) @ b)


GATHER = """%0 = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}>
      : (tensor<8x6xf32>, tensor<4x1xi32>) -> tensor<4x6xf32>"""


def test_rows_by_indices_of_32_bits():
    """As JAX has them."""
    rows = np.array([[5], [0], [7], [2]], np.int32)
    found = ran(rows, first="{}, {}", second="tensor<4x1xi32>", out='{"x"}, {}', body=GATHER, result="4x6")
    np.testing.assert_array_equal(found, A[rows[:, 0]])
