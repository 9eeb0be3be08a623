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


def loss(x, w):
    return jnp.einsum("ij,jk->ik", x, w, out_sharding=P("a", None)).sum()


def accumulated(w, xs):
    start = jax.sharding.reshard(jnp.zeros(W.shape), P(None, None, unreduced={"a"}))
    return jax.lax.scan(lambda total, x: (total + jax.grad(loss, 1)(x, w), None), start, xs)[0]


def summed_inside(x, w):
    specs = {"in_specs": P("a", None, unreduced={"b"}), "out_specs": P("a", None)}
    return jax.shard_map(lambda t: jax.lax.psum(t, "b"), **specs)(product(x, w))


def of_a_shard_map(x):
    def summand(t):  # newer JAX wants it said that the parts are summands
        return jax.lax.pcast(t.sum(1), "b", to="unreduced")

    return jax.shard_map(summand, in_specs=P("a", "b"), out_specs=P("a", unreduced={"b"}))(x)


def twice(x, w):
    return product(x, w) + product(x, w)


def placed(array, *spec, **more):
    return jax.device_put(array, NamedSharding(MESH, P(*spec, **more)))


def split():
    return placed(X, "a", "b"), placed(W, "b", None)


def rows():
    return placed(X, "a", None), placed(W, None, None, reduced={"a"})


def batches():
    return placed(W, None, None, reduced={"a"}), placed(np.stack([X, X + 1]), None, "a", None)


BORDERS = {
    "result, of a product": (product, split, set()),
    "result, of a sum of products": (twice, split, set()),
    "result, of a gradient": (jax.grad(loss, 1), rows, set()),
    "result, of a shard_map": (of_a_shard_map, lambda: split()[:1], set()),
    "result, of a loop": (accumulated, batches, None),
    "argument of a shard_map": (summed_inside, split, {"all-reduce"}),
}


def whole(array):
    """A partial sum is summed by plain JAX."""
    spec = array.sharding.spec
    return np.asarray(jax.sharding.reshard(array, P(*spec.partitions)) if spec.unreduced else array)


@pytest.mark.parametrize(("function", "arguments", "kinds"), BORDERS.values(), ids=BORDERS)
def test_partial_sums_cross_borders(function, arguments, kinds):
    with jax.set_mesh(MESH):
        given = arguments()
        wanted = jax.jit(lambda *a: function(*a))(*given)
        before = spj.stats()
        with spj.use():
            jitted = jax.jit(lambda *a: function(*a))
            found, hlo = jitted(*given), jitted.lower(*given).compile().as_text()
        assert spj.stats()["fallback"] == before["fallback"]
        assert spj.stats()["partitioned"] > before["partitioned"]
        assert found.sharding == wanted.sharding
        np.testing.assert_array_equal(whole(found), whole(wanted))
    made = set(re.findall(r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)\(", hlo))
    assert kinds is None or made == kinds


# towards a split array each device sends the summands of other parts, and sums before or after
SCATTERS = ({"reduce-scatter"}, {"all-to-all"})


@pytest.mark.parametrize(("spec", "kinds"), [(("a", None), ({"all-reduce"},)), (("a", "b"), SCATTERS)])
def test_an_argument_that_is_a_partial_sum_is_completed_as_is_wanted(spec, kinds):
    with jax.set_mesh(MESH):
        partial = jax.jit(product)(*split())
        with spj.use():
            jitted = jax.jit(lambda y: jax.sharding.reshard(y, P(*spec)))
            found, hlo = jitted(partial), jitted.lower(partial).compile().as_text()
    np.testing.assert_array_equal(np.asarray(found), X @ W)
    assert set(re.findall(r" (all-reduce|reduce-scatter|all-gather|all-to-all)\(", hlo)) in kinds


def test_a_partial_sum_that_is_argument_and_result_is_never_summed():
    with jax.set_mesh(MESH):
        partial = jax.jit(product)(*split())
        with spj.use():
            jitted = jax.jit(lambda y, z: y + z)
            found, hlo = jitted(partial, partial), jitted.lower(partial, partial).compile().as_text()
        assert found.sharding == partial.sharding
        np.testing.assert_array_equal(whole(found), 2 * (X @ W))
    assert "all-reduce" not in hlo
    assert "reduce-scatter" not in hlo
