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


@pytest.mark.parametrize(("name", "compiled_by"), [("v5e:2x4", "XLA:TPU"), ("h100:8", "XLA:GPU")])
def test_a_function_is_lowered_and_compiled_for_the_target(name, compiled_by):
    compiler(name).close()
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    import shardpass

    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    step = jax.jit(
        lambda x, w: x @ w,
        in_shardings=(NamedSharding(mesh, P("data")), NamedSharding(mesh, P())),
        out_shardings=NamedSharding(mesh, P()),
    )
    arrays = jax.ShapeDtypeStruct((64, 32), jnp.float32), jax.ShapeDtypeStruct((32, 16), jnp.float32)
    for whose in (None, "shardpass"):
        report = shardpass.explain(step, *arrays, target=name, partitioner=whose)
        assert report.compiler.startswith(f"{compiled_by} for {name} (")
        assert report.total_bytes_received == 7 * 8 * 16 * 4
        assert report.profile == parse_target(name).machine
        assert f"compiled by {compiled_by} for {name}" in str(report)


def test_a_target_of_another_size_is_an_error():
    import shardpass

    with pytest.raises(ShardpassError) as raised:
        shardpass.explain(PROGRAM, target="cpu:4")
    assert raised.value.diagnostics[0].code == "SP910"
    with pytest.raises(ShardpassError) as raised:
        shardpass.explain(PROGRAM, target="v5x:4x4")
    assert raised.value.diagnostics[0].code == "SP908"


@pytest.mark.parametrize("name", ["v5e:2x4", "h100:8"])
def test_the_program_of_the_partitioner_of_a_target_is_proved(name):
    compiler(name).close()
    from shardpass.ir.context import parse_module
    from shardpass.proving import prove
    from shardpass.proving.xla import partitioned_by_xla

    whole = parse_module(PROGRAM)
    assert prove(whole, partitioned_by_xla(whole, parse_target(name))).proved


def test_constraints_are_pinned_by_the_compiler_of_a_target():
    compiler("h100:8").close()
    from shardpass.advise.pin.pin import pin_module
    from shardpass.ir.context import parse_module

    module = parse_module(PROGRAM)
    with module.context:
        _, pins = pin_module(module, target=parse_target("h100:8"), most=4)
    assert pins.before.bytes_received == 7 * 8 * 16 * 4
    assert pins.after.bytes_received <= pins.before.bytes_received


@pytest.mark.parametrize("name", ["v5e:2x4", "h100:8", "h100:2x4"])
def test_use_compiles_ahead_of_time_for_devices_that_are_described(name):
    """In a process of its own, as a user's would be; ``strict`` raises where the program is left to XLA."""
    compiler(name).close()
    import subprocess
    import sys

    from shardpass.targets.compiler import child_environment

    code = f"""
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from shardpass.runtime.hlo_traffic import received
from shardpass.targets.child import devices_of
from shardpass.targets.target import parse_target
import shardpass.jax as spj

mesh = Mesh(np.array(devices_of(parse_target({name!r}), (4, 2))).reshape(4, 2), ("data", "model"))
x = jax.ShapeDtypeStruct((64, 32), "float32", sharding=NamedSharding(mesh, P("data")))
w = jax.ShapeDtypeStruct((32, 16), "float32", sharding=NamedSharding(mesh, P(None, "model")))
with spj.use(strict=True):
    made = jax.jit(lambda w, x: w - (x.T @ x @ w), donate_argnums=0).lower(w, x).compile()
print("input_output_alias" in made.as_text(), received(made.as_text(), 8).total > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True)
    assert done.stdout.split()[-2:] == ["True", "True"], done.stderr[-2000:]
