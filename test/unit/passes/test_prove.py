"""shardpass-prove in pipelines: what it says of right programs, of wrong ones, and of those that it cannot prove."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import Severity, ShardpassError, collect
from shardpass.ir.tensors import dense_i64, every_op
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.registry import register
from shardpass.runtime import interpret

PRODUCT = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %y: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""
NOISE = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%s: tensor<2xui64>, %x: tensor<64xui32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<64xui32> {
    %state, %noise = stablehlo.rng_bit_generator %s, algorithm = PHILOX
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xui32>)
    %r = stablehlo.add %x, %noise : tensor<64xui32>
    return %r : tensor<64xui32>
  }
}
"""


@register
@dataclass(frozen=True)
class PairsOfDevices(ModulePass):
    """A partitioner's fault: every collective over four devices is done by two and two."""

    name = "test-pairs-of-devices"
    summary = "a fault, for tests"

    def run(self, module: Any) -> None:
        for op in every_op(module.operation):
            if op.name == "stablehlo.all_reduce":
                assert np.array(op.attributes["replica_groups"]).shape == (1, 4)
                op.attributes["replica_groups"] = dense_i64(np.array([[0, 1], [2, 3]], np.int64))


def run(text, pipeline):
    with collect() as found:
        module = shardpass.run_pipeline(text, pipeline)
    return module, found


def test_a_proved_program_is_as_it_is_without_the_pass():
    plain, _ = run(PRODUCT, "partition")
    module, found = run(PRODUCT, "partition{prove=true require-proof=true}")
    assert str(module) == str(plain)
    assert not found


def test_a_wrong_program_is_an_error_at_the_wrong_op():
    """The interpreter is the witness that the fault changes the result."""
    faulty = NAMED["partition"].replace("shardpass-prove", "test-pairs-of-devices")
    wrong, _ = run(PRODUCT, faulty)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 8), (8, 4)))
    assert not np.allclose(interpret(wrong, x, y)[0], x @ y, atol=1e-3)
    with pytest.raises(ShardpassError, match=r"SP954") as error:
        run(PRODUCT, f"{faulty},shardpass-prove{{prove}}")
    assert "`stablehlo.all_reduce`" in error.value.diagnostics[0].message
    with pytest.raises(ShardpassError, match=r"SP956"):
        run(PRODUCT, f"{faulty},shardpass-prove{{prove require-proof}}")


def test_a_program_without_a_proof_is_a_warning_or_an_error():
    module, found = run(NOISE, "partition{prove=true}")
    assert str(module) == str(run(NOISE, "partition")[0])
    (warning,) = [d for d in found if d.code == "SP955"]
    assert warning.severity is Severity.WARNING
    assert "`stablehlo.add`" in warning.message  # whose operand is bits that each device makes its part of
    assert warning.place.line == 3
    with pytest.raises(ShardpassError, match="SP956"):
        run(NOISE, "partition{prove=true require-proof=true}")


def test_there_must_be_a_whole_program():
    module, _ = run(PRODUCT, "partition")
    with pytest.raises(ShardpassError, match="SP957"):
        run(str(module), "shardpass-prove{prove=true}")
    run(str(module), "shardpass-prove")  # off


TOKENS = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%t: !stablehlo.token, %x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"})
      -> (!stablehlo.token, tensor<8xf32>) {
    %0 = stablehlo.negate %x : tensor<8xf32>
    return %t, %0 : !stablehlo.token, tensor<8xf32>
  }
}
"""


def test_a_program_with_tokens_is_proved():
    """Tokens of main are results like others: both programs return the token that they are given."""
    _, diagnostics = run(TOKENS, "partition{prove=true require-proof=true}")
    assert [d.code for d in diagnostics if d.code.startswith("SP95")] == []


def test_a_wrong_program_with_tokens_is_not_proved():
    """No run can show the difference, as main's tokens have no arrays."""
    module, _ = run(TOKENS, "partition")
    right = str(module)
    assert shardpass.prove(TOKENS, right).proved
    verdict = shardpass.prove(TOKENS, right.replace("stablehlo.negate", "stablehlo.abs"))
    assert not verdict.proved
    assert verdict.unknown or verdict.refuted


LOOKUP = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x2xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, %i: tensor<3x1xi32>)
      -> (tensor<3x2xf32> {mhlo.sharding = "{replicated}"}) {
    %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}>
      : (tensor<4x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>
    return %r : tensor<3x2xf32>
  }
}
"""


def test_a_strict_proof_of_rows_that_devices_look_up():
    """Devices put 0 where they have no row, and a row of -0 comes out as 0."""
    module, found = run(LOOKUP, "partition{prove=true}")
    assert not list(found)
    x, i = np.full((4, 2), -0.0, np.float32), np.zeros((3, 1), np.int32)
    (result,) = interpret(module, x, i)
    keeps = bool(np.signbit(result).all())
    _, found = run(LOOKUP, "partition{prove=true strict-proof=true}")
    assert bool(list(found)) is not keeps
