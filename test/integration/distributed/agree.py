"""Run in 2 processes of 2 devices: the hook, compile, what neither can address alone, and programs that differ."""

import functools
import warnings

from shardpass.runtime import processes
from shardpass.runtime.processes import join, whole_value

assert join()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import shardpass  # noqa: E402
import shardpass.jax as spj  # noqa: E402
from shardpass.jax.hook import using  # noqa: E402
from shardpass.jax.scope import Mode  # noqa: E402

assert (jax.device_count(), jax.local_device_count()) == (4, 2)
MESH = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
ME = jax.process_index()
rng = np.random.default_rng(0)
x, w = rng.normal(size=(8, 16)).astype(np.float32), rng.normal(size=(16, 8)).astype(np.float32)


def put(array, *spec):
    return jax.make_array_from_callback(array.shape, NamedSharding(MESH, P(*spec)), lambda index: array[index])


def layer(x, w):
    return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(MESH, P(None, "data")))


def raised(code, run):
    with pytest.raises(shardpass.ShardpassError) as refused:
        run()
    assert refused.value.code == code, refused.value
    print("raised", code, str(refused.value).splitlines()[0])


# 1. inside JAX, with a call of Python that only the device's own process can make
with spj.use(strict=True):
    y = jax.jit(layer)(put(x, "data", None), put(w, "model", None))
    np.testing.assert_allclose(whole_value(y), np.tanh(x @ w), rtol=1e-5, atol=1e-6)
    twice = jax.jit(lambda v: jax.pure_callback(lambda v: 2 * np.asarray(v), jax.ShapeDtypeStruct(v.shape, v.dtype), v))
    np.testing.assert_array_equal(whole_value(twice(put(x, "data", None))), 2 * x)
assert spj.stats()["fallback"] == 0
print("hook", spj.stats()["partitioned"])

# 2. compile: a result that does not divide, one on a single device (of process 1), one that divides
TEXT = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<5xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> (
      tensor<5xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}, tensor<5xf32> {mhlo.sharding = "{maximal device=3}"},
      tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %0 = stablehlo.negate %x : tensor<5xf32>
    %1 = stablehlo.add %x, %x : tensor<5xf32>
    %2 = stablehlo.iota dim = 0 : tensor<8xf32>
    return %0, %1, %2 : tensor<5xf32>, tensor<5xf32>, tensor<8xf32>
  }
}"""
exe = shardpass.compile(shardpass.run_pipeline(TEXT, "partition"))
five = np.arange(5, dtype=np.float32)
negated, doubled, counted = exe(five)
np.testing.assert_array_equal(whole_value(negated), -five)
np.testing.assert_array_equal(whole_value(doubled), 2 * five)
assert [shard.data.shape for shard in counted.addressable_shards] == [(2,)] * 2
np.testing.assert_array_equal(whole_value(counted), np.arange(8))
assert [tile is None for tile in exe.run_tiles(*exe.place(five))[2]] == [ME == 1, ME == 1, ME == 0, ME == 0]

# 3. of fewer devices than there are, the same number of each process; an array that is placed goes in again
HALF = TEXT.replace("= 4 : i32", "= 2 : i32").replace("[4]<=[4]", "[2]<=[2]").replace("device=3", "device=1")
half = shardpass.compile(shardpass.run_pipeline(HALF, "partition"))
assert [device.process_index for device in half.devices] == [0, 1]
np.testing.assert_array_equal(whole_value(half(five)[0]), -five)
again = shardpass.compile(shardpass.run_pipeline(TEXT.replace("5xf32", "8xf32"), "partition"))
np.testing.assert_array_equal(whole_value(again(counted)[0]), -np.arange(8, dtype=np.float32))
raised(
    "SP563",
    lambda: shardpass.compile(
        shardpass.run_pipeline(HALF.replace("= 2 : i32", "= 3 : i32").replace("[2]<=[2]", "[3]<=[3]"), "partition")
    ),
)

# 4. programs that differ are refused in both processes, in the hook too
other = TEXT.replace("negate", ["negate", "abs"][ME])
raised("SP560", lambda: shardpass.compile(shardpass.run_pipeline(other, "partition")))
with spj.use():
    raised("SP560", lambda: jax.jit(lambda v: v * float(ME))(put(x, "data", None)))


# 5. what shardpass cannot partition is left to XLA in both; where one alone cannot, neither goes on
def thrice(v, more):
    return 3 * v + more


bad = "no-such-pass"
with using(Mode(True, pipeline=bad)), warnings.catch_warnings(record=True) as told:
    left = jax.jit(functools.partial(thrice, more=1))(put(x, "data", None))
np.testing.assert_allclose(whole_value(left), 3 * x + 1, rtol=1e-6)
assert "SP105" in str(told[0].message)
with using(Mode(True, pipeline=["partition", bad][ME])):
    raised("SP560", lambda: jax.jit(functools.partial(thrice, more=2))(put(x, "data", None)))

# 6. a process that never comes is named
processes.PATIENCE = 2
if ME == 0:
    raised("SP561", lambda: shardpass.compile(shardpass.run_pipeline(TEXT, "partition")))
print("done")
