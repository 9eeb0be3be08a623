"""Variants of a program as XLA compiles them, in one child."""

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.report.hlo.verify import Verifier

# y = x @ w, w whole: nothing is sent; with y gathered, each device gets 7 of 8 tiles of [8, 16] f32
PROGRAM = """
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}},
      %w: tensor<32x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}})
      -> (tensor<64x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{result}, {{}}]>}}) {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }}
}}
"""  # noqa: E501  IR is not wrapped
SPLIT, WHOLE = PROGRAM.format(result='{"data"}'), PROGRAM.format(result="{}")


def test_one_child_compiles_all_variants():
    with Verifier(8) as verifier:
        split = verifier.build(SPLIT.encode())
        first = verifier._child
        whole = verifier.build(WHOLE.encode())
        assert verifier._child is first
        assert verifier.compiled == 2
    assert first.poll() is not None
    assert split.bytes_received == 0
    assert whole.bytes_received == 7 * 8 * 16 * 4
    assert split.arguments == whole.arguments == 4 * (8 * 32 + 32 * 16)
    assert split.flops == 2 * 8 * 32 * 16
    assert whole.memory - whole.temporaries == whole.arguments + 64 * 16 * 4


def test_seconds_are_those_of_the_machine():
    from shardpass.cost.machine import switched

    slow = switched("slow", 1.0, 448.0, 1e30)  # a second of latency, 448 B/s, no work
    with Verifier(8) as verifier:
        assert verifier.build(SPLIT.encode()).seconds(slow) == pytest.approx(0, abs=1e-12)
        assert verifier.build(WHOLE.encode()).seconds(slow) == pytest.approx(1 + 7 * 8 * 16 * 4 / 448)


@pytest.mark.parametrize("bad", ["module {", SPLIT.replace("num_partitions = 8", "num_partitions = 16")])
def test_a_program_that_fails_leaves_the_next_alone(bad):
    with Verifier(8) as verifier:
        with pytest.raises(ShardpassError) as raised:
            verifier.build(bad.encode())
        assert raised.value.diagnostics[0].code == "SP553"
        assert verifier.build(SPLIT.encode()).bytes_received == 0


def test_a_child_that_ends_is_replaced():
    with Verifier(8) as verifier:
        verifier.build(SPLIT.encode())
        verifier._child.kill()
        with pytest.raises(ShardpassError, match="xla"):
            verifier.build(SPLIT.encode())
        assert verifier.build(SPLIT.encode()).bytes_received == 0


def test_a_child_that_takes_too_long_is_ended():
    with Verifier(8, timeout=0.01) as verifier, pytest.raises(ShardpassError, match=r"more than 0 s"):
        verifier.build(SPLIT.encode())
