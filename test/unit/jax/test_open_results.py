"""Results of which the user said nothing have shardings that JAX can hold, whatever the program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

pytestmark = pytest.mark.usefixtures("shardy")


def mesh_of(**axes):
    sizes = tuple(axes.values())
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), tuple(axes))


EIGHT, GRID, PRIME = {"x": 8}, {"a": 4, "b": 2}, {"a": 2, "b": 2, "c": 3}
PROGRAMS = {
    "slice": (EIGHT, P("x"), (16,), lambda x: x[:12] * 2),
    "pad": (EIGHT, P("x"), (16,), lambda x: jnp.pad(x, (1, 3))),
    "reshape to fewer rows": (EIGHT, P("x"), (16,), lambda x: x.reshape(4, 4) * 2),
    "reshape, split over two": (EIGHT, P("x"), (16,), lambda x: x.reshape(2, 8) * 2),
    "concatenate": (EIGHT, P("x"), (16,), lambda x: jnp.concatenate([x, x[:3]])),
    "several results": (EIGHT, P("x"), (16,), lambda x: (x[:12], x * 2, x[:4].reshape(2, 2), jnp.ones(3))),
    "rows and columns": (GRID, P("a", "b"), (16, 4), lambda x: x[:6].T * 2),
    "slice of a grid": (GRID, P("a", "b"), (16, 4), lambda x: x[:6] * 2),
    "two axes on one dimension": (GRID, P(("a", "b")), (16, 4), lambda x: x[:12] + 1),
    "twelve devices": (PRIME, P(("a", "c"), "b"), (12, 4), lambda x: x[:4, :2] + 1),
    "convolution": (EIGHT, P("x"), (16,), lambda x: jnp.convolve(x, jnp.ones(3))),
    "carried by a loop": (EIGHT, P("x"), (16,), lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c * 2, x[:12])),
}


@pytest.mark.parametrize(("axes", "spec", "shape", "function"), PROGRAMS.values(), ids=PROGRAMS)
def test_an_open_result_has_a_sharding_of_the_users_mesh(axes, spec, shape, function):
    mesh = mesh_of(**axes)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    given = jax.device_put(x, NamedSharding(mesh, spec))
    wanted = jax.jit(function)(x)  # over 8 devices plain JAX raises for some of these itself, with GSPMD
    before = spj.stats()
    with spj.use():
        found = jax.jit(function)(given)
    assert spj.stats()["partitioned"] == before["partitioned"] + 1
    assert spj.stats()["fallback"] == before["fallback"]
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-6)
        assert isinstance(mine.sharding, NamedSharding)
        assert mine.sharding.mesh == mesh
        assert mine.sharding.spec is not None
        jax.device_put(mine, mine.sharding)  # refused by JAX where the tiles do not divide


def here(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh_of(**GRID), P(*spec)))


FOLLOWING = {
    "elementwise": (lambda x: here(x, "a") * 2 + 1, P("a")),
    "replicated": (lambda x: jnp.exp(here(x)), P()),
    "transposed": (lambda x: (here(x, "b", "a") * 2).T, P("a", "b")),
    "with an open dimension": (lambda x: here(x, P.UNCONSTRAINED, "a") * 2, P(None, "a")),
    "mapped": (jax.vmap(lambda row: here(row, "a") * 2), P(None, "a")),
    "carried by a loop": (lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c * 2, here(x, "b")), P("b")),
}


@pytest.mark.parametrize(("function", "spec"), FOLLOWING.values(), ids=FOLLOWING)
def test_a_result_that_follows_from_a_constraint_is_as_it_says(function, spec):
    """It costs a gather, where a result split over both axes would cost nothing: that is what was asked for."""
    x = jax.device_put(np.ones((16, 16), np.float32), NamedSharding(mesh_of(**GRID), P("a", "b")))
    assert jax.jit(lambda x: function(x))(x).sharding.spec == spec  # plain JAX
    with spj.use(strict=True):
        assert jax.jit(lambda x: function(x))(x).sharding.spec == spec


def test_a_result_with_another_sharding_than_was_asked_for_falls_back(monkeypatch):
    """XLA's answer is looked at before JAX gets it: JAX would raise."""
    from shardpass.jax import hook

    mesh = mesh_of(**EIGHT)
    x = jax.device_put(np.arange(16.0, dtype=np.float32), NamedSharding(mesh, P("x")))
    half = "{devices=[4,2]<=[8] last_tile_dim_replicate}"
    monkeypatch.setattr(hook.jax_private, "boundary_shardings", lambda loaded: (["{devices=[8]<=[8]}"], [half]))
    before = spj.stats()["fallback"]
    with spj.use(), pytest.warns(spj.FallbackWarning, match="SP606"):
        y = jax.jit(lambda x: x * 3)(x)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x) * 3)
    assert spj.stats()["fallback"] == before + 1
