"""The third witness of the differential fuzzer: StableHLO's interpreter, on programs with CHLO's ops too."""

from math import erf

import numpy as np
import pytest

import shardpass
from shardpass.runtime import interpret
from tools.fuzz.examine import blames_xla
from tools.fuzz.programs import Node, Program
from tools.values import Fact, Type

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
    (found,) = interpret(alone, given)
    np.testing.assert_allclose([erf(x) for x in np.asarray(found)], given, atol=1e-6)


def test_the_interpreter_is_asked_for_the_results_that_differ_alone() -> None:
    """It does not know the op that the other result needs."""
    value, bits = Fact(Type((4,), "f32")), Fact(Type((4,), "ui32"), np.inf, exact=False)
    seed, state = "dense<[1, 2]> : tensor<2xui64>", Fact(Type((2,), "ui64"), np.inf, exact=False)
    random = "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>"
    program = Program(
        devices=2,
        arguments=((value, ""),),
        nodes=(
            Node("stablehlo.constant", (), (state,), f"value = {seed}"),
            Node("stablehlo.rng_bit_generator", (1,), (state, bits), random),
            Node("stablehlo.negate", (0,), (value,)),
        ),
        results=((3, ""), (4, "")),
    )
    given = [np.array([1.0, 2.0, 3.0, 0.0], np.float32)]
    other, right, wrong = np.zeros(4, np.uint32), -given[0], given[0] + 5
    assert blames_xla(program, given, [other, wrong], [other, right])
    assert not blames_xla(program, given, [other, right], [other, wrong])
    assert not blames_xla(program, given, [other, wrong], [other, wrong + 1])
    with pytest.raises(shardpass.ShardpassError):
        interpret(shardpass.run_pipeline(program.text(), "partition"), *given)
