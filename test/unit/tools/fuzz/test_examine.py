"""The third witness of the differential fuzzer: StableHLO's interpreter, on programs with CHLO's ops too."""

from math import erf

import numpy as np
import pytest

import shardpass
from shardpass.runtime import interpret
from tools.fuzz.examine import without_chlo

PROGRAM = """
module attributes {mhlo.num_partitions = 1 : i32} {
  func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
    %0 = chlo.erf_inv %x : tensor<5xf32> -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
"""


def test_ops_of_chlo_are_written_out_for_the_interpreter() -> None:
    given = np.array([-0.9, -0.5, 0.0, 0.25, 0.75], np.float32)
    alone = shardpass.run_pipeline(PROGRAM, "partition")
    with pytest.raises(shardpass.ShardpassError, match="SP540"):
        interpret(alone, given)
    (found,) = interpret(without_chlo(alone), given)
    np.testing.assert_allclose([erf(x) for x in np.asarray(found)], given, atol=1e-6)
