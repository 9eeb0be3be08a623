"""XLA's compilers for TPUs and GPUs, where their packages are installed."""

import pytest

from shardpass import run_pipeline
from shardpass.diagnostics import ShardpassError
from shardpass.targets.compiler import Compiler
from shardpass.targets.target import parse_target
from shardpass.targets.versions import is_installed

# y = x @ w with y gathered: each device gets 7 of 8 tiles of [8, 16] f32
PROGRAM = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
      -> (tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }
}
"""  # noqa: E501  IR is not wrapped


def compiler(name: str) -> Compiler:
    target = parse_target(name)
    if not is_installed(target):
        pytest.skip(f"the compiler of {target} is not installed")
    return Compiler(target)


@pytest.mark.parametrize("name", ["v5e:2x4", "v5p:2x2x2", "h100:8", "h100:2x4"])
def test_the_compiler_of_a_target_needs_no_device(name):
    with compiler(name) as built:
        by_xla = built.compile(PROGRAM.encode())
        partitioned = run_pipeline(PROGRAM, "partition").operation.get_asm(enable_debug_info=True)
        by_us = built.compile(partitioned.encode())
    for program in (by_xla, by_us):
        assert "is_scheduled=true" in program.hlo
        assert program.bytes_received == 7 * 8 * 16 * 4
        assert program.arguments >= 4 * (8 * 32 + 32 * 16)  # a TPU pads tiles to 8 x 128
        assert program.version == built.version


def test_a_program_that_the_compiler_refuses_is_an_error_of_the_target():
    with compiler("h100:8") as built, pytest.raises(ShardpassError) as raised:
        built.compile(PROGRAM.replace("num_partitions = 8", "num_partitions = 16").encode())
    assert raised.value.diagnostics[0].code == "SP911"


def test_devices_come_in_the_order_of_jax():
    pytest.importorskip("libtpu")
    import json
    import subprocess
    import sys

    code = (
        "import json; from shardpass.targets.child import devices_of;"
        "from shardpass.targets.target import parse_target;"
        "print(json.dumps([d.id for d in devices_of(parse_target('v5e:2x4'), (4, 2))]))"
    )
    from shardpass.targets.compiler import child_environment

    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 1, 2, 3, 7, 6, 5, 4]  # a ring of neighbours in 2x4
