"""``shard_map`` over some axes: the other axes are shardpass's, and nothing falls back.

The witness is XLA's partitioner of Shardy's notation: GSPMD's refuses some of these programs.
"""

from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
RING = [(i, (i + 1) % 4) for i in range(4)]


def over_a(tile):
    return jax.shard_map(tile, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}, check_vma=False)


def uneven(tile):
    """A value that is used twice: columns of 6, cut in halves that two devices do not divide."""
    return tile[:, :3] @ tile[:, 3:].T


def constrained(tile):
    here = NamedSharding(jax.sharding.get_abstract_mesh(), P(None, "b"))
    tile = jax.lax.with_sharding_constraint(tile, here)
    return jnp.cumsum(tile, 1) + jax.lax.ppermute(tile, "a", RING)


def nested(tile):
    inner = jax.shard_map(
        lambda t: jax.lax.psum(t, "b") * jax.lax.axis_index("b"),
        in_specs=P(None, "b"),
        out_specs=P(None, "b"),
        axis_names={"b"},
        check_vma=False,
    )
    return inner(tile) + tile


def looped(tile):
    return jax.lax.scan(lambda c, _: (jax.lax.ppermute(c, "a", RING) * 0.5 + tile, c.sum()), tile, None, length=3)[0]


@contextmanager
def in_shardy(value=True):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", value)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


PROGRAMS = {
    "uneven": over_a(uneven),
    "constrained": over_a(constrained),
    "nested": over_a(nested),
    "in a loop": over_a(looped),
    "a gradient": jax.grad(lambda x: (over_a(lambda t: jnp.tanh(t @ t.T))(x) ** 2).sum()),
    "told": over_a(lambda t: (jax.debug.callback(lambda _: None, t.sum()), t * 2)[1]),
}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_the_other_axes_are_partitioned(shardy, function):
    x = jax.device_put(np.arange(48, dtype=np.float32).reshape(8, 6) / 48, NamedSharding(MESH, P("a")))
    with jax.set_mesh(MESH):
        with in_shardy():
            wanted = jax.jit(lambda x: function(x))(x)
        before = spj.stats()
        with spj.use():
            found = jax.jit(lambda x: function(x))(x)
    jax.effects_barrier()
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] > before["partitioned"]
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)


ONE = jax.make_mesh((8, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
# NumPy's value beside each: over one device a sum is its operand
OVER_ONE = {
    "psum": (lambda t: jax.lax.psum(t * 2, "y"), lambda t: t * 2),
    "pmean and pmax": (lambda t: jax.lax.pmean(t, "y") + jax.lax.pmax(t, "y"), lambda t: 2 * t),
    "all_gather": (lambda t: jax.lax.all_gather(t, "y")[0], lambda t: t),
    "psum_scatter": (lambda t: jax.lax.psum_scatter(t, "y", tiled=True), lambda t: t),
    "ppermute": (lambda t: t + jax.lax.ppermute(t, "y", [(0, 0)]), lambda t: 2 * t),
    "nobody sends": (lambda t: t + jax.lax.ppermute(t, "y", []), lambda t: t),
    "product": (lambda t: jax.lax.psum(t @ t.T, "y") @ t, lambda t: t @ t.T @ t),
    "loop": (
        lambda t: jax.lax.scan(lambda c, _: (jax.lax.psum(c, "y") * 0.5, None), t, None, length=3)[0],
        lambda t: t / 8,
    ),
    "gradient": (jax.grad(lambda t: jax.lax.psum(t * t, "y").sum()), lambda t: 2 * t),
}


@pytest.mark.parametrize("shardy", [True, False])
@pytest.mark.parametrize("name", OVER_ONE)
def test_an_axis_of_one_device(name, shardy):
    """JAX drops the region, and its collectives stay in groups of one device. XLA refuses the sums of these."""
    tile, wanted = OVER_ONE[name]
    x = np.arange(64, dtype=np.float32).reshape(8, 8) % 5
    region = jax.shard_map(
        tile, mesh=ONE, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}, check_vma=False
    )
    with in_shardy(shardy), spj.use(strict=True):
        found = jax.jit(region, in_shardings=NamedSharding(ONE, P("x")))(x)
    np.testing.assert_array_equal(np.asarray(found), wanted(x))
