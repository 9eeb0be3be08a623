"""Asynchronous collectives, as the ones that they start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError

EIGHT = Mesh(np.array(jax.devices()[:8]), ("i",), axis_types=(AxisType.Explicit,))

CALLED = """
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
        (%a: tensor<4xf32>) {
      %f = func.call @begin(%a) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
      %b = stablehlo.add %a, %a : tensor<4xf32>
      %y = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
      %c = stablehlo.subtract %b, %y : tensor<4xf32>
      sdy.return %c : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @begin(%x: tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>> {
    %f = "stablehlo.async_start"(%x) ({
    ^bb0(%a: tensor<4xf32>):
      %s = "stablehlo.collective_permute"(%a) {
        source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
      } : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %s : tensor<4xf32>
    }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
    return %f : !stablehlo.future<tensor<4xf32>>
  }
}
"""
WAITED_FOR = """
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%f: !stablehlo.future<tensor<4xf32>>) -> tensor<4xf32> {
    %y = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""


def test_a_future_that_a_call_returns_is_an_array():
    module = shardpass.run_pipeline(CALLED, "partition")
    assert "future" not in str(module)
    assert "async" not in str(module)
    exe = shardpass.compile(module)
    x = np.arange(8, dtype=np.float32)
    (found,) = exe.run(*exe.place(x))
    np.testing.assert_array_equal(np.asarray(found), 2 * x - np.roll(x, 4))


def test_a_future_that_nobody_started_is_refused():
    with pytest.raises(ShardpassError, match="SP224"):
        shardpass.run_pipeline(WAITED_FOR, "partition")


STARTS = {
    "psum": (lambda x: lax.psum(x, "i"), lambda p, x: p.psum_start(x, "i")),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        lambda p, x: p.all_to_all_start(x, "i", split_axis=0, concat_axis=0, tiled=True),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        lambda p, x: p.psum_scatter_start(x, "i", scatter_dimension=0, tiled=True),
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(k, k ^ 1) for k in range(8)]),
        lambda p, x: p.ppermute_start(x, "i", [(k, k ^ 1) for k in range(8)]),
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_what_jax_starts_early_is_partitioned(name):
    private = pytest.importorskip("jax._src.lax.parallel")
    if not hasattr(private, f"{name}_start"):
        pytest.skip(f"jax {jax.__version__} has no {name}_start")
    sync, start = STARTS[name]
    x = jax.device_put(np.arange(512, dtype=np.float32), NamedSharding(EIGHT, P("i")))
    f = jax.shard_map(lambda x: (sync(x), start(private, x).done()), mesh=EIGHT, in_specs=P("i"), out_specs=P("i"))
    with spj.use(strict=True):
        at_once, started = jax.jit(f)(x)
    np.testing.assert_array_equal(np.asarray(started), np.asarray(at_once))
    assert jnp.abs(started).sum() > 0
