"""What JAX tells the host about tiles: `inspect_array_sharding`, and callbacks on local shards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
X = np.arange(128, dtype=np.float32).reshape(8, 16) % 7
SEEN = []


def inspect(x):
    jax.debug.inspect_array_sharding(x, callback=lambda sharding: SEEN.append(sharding.spec))
    return x


def here(x, *spec):
    """What is not said, shardpass may split in another way than XLA."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def of_values(x):
    return inspect(here(inspect(here(x * 2, "a", "b")) > 3, "b", None)), inspect(x.sum())


def in_a_loop(x):
    return jax.lax.scan(lambda c, _: (here(inspect(c) + 1, "a", "b"), None), x, None, length=2)[0]


@pytest.mark.parametrize("function", [of_values, in_a_loop])
def test_the_user_is_told_the_shardings_that_shardpass_chose(shardy, function):
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))

    def told():
        SEEN.clear()
        result = jax.jit(lambda x: function(x), out_shardings=None)(x)
        return jax.tree.leaves(result), sorted(map(str, SEEN))

    wanted, heard = told()
    before = spj.stats()["fallback"]
    with spj.use():
        found, seen = told()
    assert spj.stats()["fallback"] == before
    assert seen == heard
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def note(*tiles):
    SEEN.append([np.asarray(tile).tolist() for tile in tiles])


def told_of_one(x):
    jax.debug.callback(note, x * 2, partitioned=True)
    return x


def told_of_a_sum(x):
    jax.debug.callback(note, x.sum(), partitioned=True)
    return x


def told_of_two(x):
    """Of the second, tiles that two devices of ``a`` have in common, though its operand is split further."""
    jax.debug.callback(note, x, here(x.T, "b", None), partitioned=True)
    return x


def told_in_a_loop(x):
    def body(c, _):
        jax.debug.callback(note, c, partitioned=True)
        return here(c + 1, "a", "b"), None

    return jax.lax.scan(body, x, None, length=2)[0]


@pytest.mark.parametrize("function", [told_of_one, told_of_a_sum, told_of_two, told_in_a_loop])
def test_callbacks_on_local_shards_get_the_tiles(function):
    """The order of devices is not fixed."""
    x = jax.device_put(jnp.asarray(X), NamedSharding(MESH, P("a", "b")))

    def heard():
        SEEN.clear()
        jax.block_until_ready(jax.jit(lambda x: function(x))(x))
        jax.effects_barrier()
        return sorted(SEEN)

    wanted = heard()
    before = spj.stats()["fallback"]
    with spj.use():
        found = heard()
    assert spj.stats()["fallback"] == before
    assert len(found) in (8, 16)
    assert found == wanted
