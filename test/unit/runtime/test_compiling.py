"""What is asked of a module before XLA compiles it, and the names under which the user finds ops again."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.runtime.compiling import refuse_callbacks


def calling(target: str) -> str:
    return f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @{target}(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }}"""


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback"])
def test_a_call_of_python_is_refused(target: str) -> None:
    with pytest.raises(ShardpassError) as error:
        refuse_callbacks(parse_module(calling(target), "m.mlir"))
    assert error.value.code == "SP508"
    assert target in str(error.value)


@pytest.mark.parametrize("target", ["my_callback", "python_free_kernel", "lapack_sgetrf_ffi"])
def test_other_calls_are_not(target: str) -> None:
    refuse_callbacks(parse_module(calling(target)))


def test_ops_keep_the_names_of_the_users_program() -> None:
    """Each once: XLA puts the name of the region around an op before the op's own."""

    def program(x):
        with jax.named_scope("head"):
            y = jnp.tanh(x)
        return y @ y.T

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    jitted = jax.jit(program, in_shardings=NamedSharding(mesh, P("x")))
    text = jitted.lower(jax.ShapeDtypeStruct((8, 16), np.float32)).as_text(debug_info=True)
    hlo = shardpass.compile(shardpass.run_pipeline(text, "partition")).hlo_text()
    names = re.findall(r'op_name="([^"]*)"', hlo)
    assert any(name.startswith("jit(program)/head/tanh") for name in names)
    assert any(name.startswith("jit(program)/dot_general") for name in names)
    assert not [name for name in names if name.count("jit(program)") > 1]
