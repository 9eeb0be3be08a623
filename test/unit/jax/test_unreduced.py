"""Sums that JAX's types leave to be done later: `P(unreduced=...)` inside of a program."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[:8])
X = np.arange(64, dtype=np.float32).reshape(8, 8) % 7
W = np.arange(64, dtype=np.float32).reshape(8, 8) % 5


def product(x, w):
    return jnp.einsum("ij,jk->ik", x, w, out_sharding=P("a", None, unreduced={"b"}))


PROGRAMS = {
    "summed": (lambda x, w: jax.sharding.reshard(product(x, w), P("a", None)), "all-reduce"),
    "scattered": (lambda x, w: jax.sharding.reshard(product(x, w), P("a", "b")), "reduce-scatter"),
    "in a loop": (
        lambda x, w: jax.lax.scan(
            lambda c, _: (jax.sharding.reshard(product(c, w), P("a", "b")), None), x, None, length=2
        )[0],
        "reduce-scatter",
    ),
}


@pytest.mark.parametrize(("function", "kind"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_sum_is_completed_as_the_next_sharding_wants_it(function, kind):
    x, w = jax.device_put(X, NamedSharding(MESH, P("a", "b"))), jax.device_put(W, NamedSharding(MESH, P("b", None)))
    with jax.set_mesh(MESH):
        wanted = jax.jit(lambda x, w: function(x, w))(x, w)
        before = spj.stats()
        with spj.use():
            jitted = jax.jit(lambda x, w: function(x, w))
            found, hlo = jitted(x, w), jitted.lower(x, w).compile().as_text()
    assert spj.stats()["fallback"] == before["fallback"]
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    assert found.sharding == wanted.sharding
    kinds = re.findall(r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)\(", hlo)
    assert set(kinds) == {kind}


def test_a_partial_sum_that_leaves_a_shard_map_is_summed():
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    with jax.set_mesh(MESH):
        specs = {"in_specs": P("a", "b"), "out_specs": P("a", unreduced={"b"})}
        rows = jax.shard_map(lambda t: t.sum(1), **specs, check_vma=False)
        before = spj.stats()
        with spj.use():
            found = jax.jit(lambda x: jax.sharding.reshard(rows(x), P("a")))(x)
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] > before["partitioned"]
    np.testing.assert_array_equal(np.asarray(found), X.sum(axis=1))
