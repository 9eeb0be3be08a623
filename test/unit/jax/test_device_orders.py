"""The same devices in another order: one program whose arguments and results name them in two orders."""

import re

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.ir.context import parse_module
from shardpass.jax.manual_region import wrap
from shardpass.pipeline.run import run_pipeline

DEVICES = np.array(jax.devices()[:8])
X = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)

SHAPES = {"x": (8,), "a b": (4, 2), "p q r": (2, 2, 2)}


def sharding(order, axes, spec):
    return NamedSharding(Mesh(DEVICES[order].reshape(SHAPES[axes]), tuple(axes.split())), spec)


SOURCE = sharding(list(range(8)), "x", P("x"))
TARGETS = {
    "reversed": sharding([7, 6, 5, 4, 3, 2, 1, 0], "x", P("x")),
    "columns, reversed": sharding([7, 6, 5, 4, 3, 2, 1, 0], "x", P(None, "x")),
    "copies, no pattern": sharding([3, 1, 0, 2, 7, 6, 5, 4], "a b", P("a")),
    "both dimensions, no pattern": sharding([5, 2, 7, 0, 1, 6, 4, 3], "a b", P("b", "a")),
    "a torus's order": sharding([0, 1, 3, 2, 6, 7, 5, 4], "p q r", P(("r", "p"), "q")),
    "whole": sharding([5, 2, 7, 0, 1, 6, 4, 3], "x", P()),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_device_put(shardy, target):
    """Each device holds what its place in the target's mesh says, by arithmetic of NumPy; and JAX goes on with it."""
    x = jax.device_put(X, SOURCE)
    before = spj.stats()
    with spj.use(strict=True):
        y = jax.device_put(x, target)
        z = jax.jit(lambda y: y * 2)(y)
    assert spj.stats()["partitioned"] == before["partitioned"] + 2
    assert y.sharding == target
    for array, whole in ((y, X), (z, 2 * X)):
        for shard in array.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
    assert {s.device: s.index for s in y.addressable_shards} == target.devices_indices_map(X.shape)
    np.testing.assert_array_equal(x, X)


def test_a_donated_array_is_given_up(shardy):
    x = jax.device_put(X, SOURCE)
    with spj.use(strict=True):
        y = jax.device_put(x, TARGETS["reversed"], donate=True)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, X)


def test_and_back_again(shardy):
    x = jax.device_put(X, SOURCE)
    with spj.use(strict=True):
        for target in (*TARGETS.values(), SOURCE):
            x = jax.device_put(x, target)
    np.testing.assert_array_equal(x, X)
    assert x.sharding == SOURCE


TWO_ORDERS = """
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @other = <["x"=8]>
  func.func public @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}, {}]>}) {
    return %x : tensor<16x8xf32>
  }
}
"""


@pytest.mark.parametrize(("text", "in_shardy"), [(TWO_ORDERS, False), (TWO_ORDERS.replace("@other,", "@mesh,"), True)])
def test_the_notation_is_gspmds_where_shardy_has_no_word(text, in_shardy):
    module = run_pipeline(text, "partition")
    _, found = wrap(module, parse_module(text), shardy=True)
    assert found == in_shardy
    assert bool(re.search(r"\bsdy\.", str(module))) == in_shardy
    assert ("@SPMDFullToShardShape" in str(module)) != in_shardy
