"""A partitioned module wrapped for JAX is a whole-array module that XLA compiles to the same collectives."""

from pathlib import Path

import jax
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir import jax_private
from shardpass.ir.context import copy_module, parse_module
from shardpass.ir.written import bytecode
from shardpass.jax.manual_region import wrap
from shardpass.pipeline.run import run_pipeline
from shardpass.runtime import compile
from shardpass.runtime.executable import Executable
from shardpass.runtime.hlo import added_by_xla, emitted
from shardpass.runtime.inputs import random_inputs
from shardpass.runtime.partitioned_signature import Signature, read_signature

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["mlp_train_step", "transformer_block", "shard_map_matmul_reduce_scatter", "format_blocks", "format_rows"]
modes = pytest.mark.parametrize("shardy", [True, False], ids=["shardy", "gspmd"])


def run_wrapped(module, original, arrays, *, shardy):
    """-> results, XLA's executable: whole arrays in and out, through XLA's border."""
    signature = read_signature(module)
    wrapped = copy_module(module)
    wrap(wrapped, original, shardy=shardy)
    devices = jax.devices()[: signature.num_devices]
    loaded = jax_private.compile_and_load(bytecode(wrapped), devices, shardy=shardy)
    arguments, results = jax_private.boundary_shardings(loaded)
    assert arguments == [str(b.sharding) for b in signature.arguments]
    assert results == [str(b.sharding) for b in signature.results]
    exe = Executable(Signature(len(devices), signature.arguments, signature.results), loaded, devices)
    return [np.asarray(r) for r in exe(*arrays)], exe


@modes
@pytest.mark.parametrize("name", FILES)
def test_examples(name, shardy):
    text = (EXAMPLES / f"{name}{'.sdy' if shardy else ''}.mlir").read_text()
    module = run_pipeline(text, "partition")
    inputs = random_inputs(read_signature(module).arguments)
    found, exe = run_wrapped(module, parse_module(text), inputs, shardy=shardy)
    for mine, theirs in zip(found, compile(module)(*inputs), strict=True):
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-5, atol=1e-6)
    assert added_by_xla(exe.hlo_text(), module) == []
    assert bool(emitted(module)) == (not name.startswith("format_"))


ORDER = "{devices=[8]7,2,5,3,1,0,6,4}"
ANY_ORDER = f"""module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<16xi32> {{mhlo.sharding = "{ORDER}", tf.aliasing_output = 0 : i32}})
      -> (tensor<16xi32> {{jax.result_info = "y", mhlo.sharding = "{ORDER}"}}) {{
    %0 = stablehlo.negate %x : tensor<16xi32>
    return %0 : tensor<16xi32>
  }}
}}"""


@modes
def test_any_order_of_devices(shardy):
    module = run_pipeline(ANY_ORDER, "partition")
    x = np.arange(16, dtype=np.int32)
    (y,), _ = run_wrapped(module, parse_module(ANY_ORDER), [x], shardy=shardy)
    np.testing.assert_array_equal(y, -x)


@modes
def test_what_jax_said_of_arguments_and_results_is_kept(shardy):
    module = run_pipeline(ANY_ORDER, "partition")
    wrap(module, parse_module(ANY_ORDER), shardy=shardy)
    text = str(module)
    assert "tf.aliasing_output = 0" in text
    assert 'jax.result_info = "y"' in text
    assert "shardpass.global_type" not in text


@modes
def test_what_does_not_divide_is_refused(shardy):
    text = (EXAMPLES / "format_partially_replicated.mlir").read_text()
    module = run_pipeline(text, "partition")
    with pytest.raises(ShardpassError, match="SP604") as caught:
        wrap(module, parse_module(text), shardy=shardy)
    assert "argument 0 has shape [4, 3]" in str(caught.value)


def test_a_sharding_without_axes_is_refused_for_shardy():
    text = ANY_ORDER.replace(ORDER, "{maximal device=3}")
    module = run_pipeline(text, "partition")
    with pytest.raises(ShardpassError, match="SP605"):
        wrap(module, parse_module(text), shardy=True)
