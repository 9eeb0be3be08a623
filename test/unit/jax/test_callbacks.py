"""Callbacks into Python run as often, with the same arguments, as in plain JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError

EIGHT = Mesh(np.array(jax.devices()[:8]), ("x",))
SEEN = []
TILES = {"partitioned": True}


def note(a):
    SEEN.append(np.asarray(a).tolist())


def kind(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def both(a):
    return np.asarray(a) > 3, np.asarray(a).astype(np.int32)


def told(a):
    note(a)
    return np.float32(np.sum(a))


def looped(x):
    return jax.lax.fori_loop(0, 3, lambda i, c: (jax.debug.callback(note, c.sum()), c + 1)[1], x)


def branched(x):
    return jax.lax.cond(x[0] > -1, lambda x: (jax.debug.callback(note, x.sum()), x + 1)[1], lambda x: x, x)


def per_device(x):
    body = lambda tile: (jax.debug.callback(note, tile.size), tile * 2)[1]  # noqa: E731
    return jax.shard_map(body, mesh=EIGHT, in_specs=P("x"), out_specs=P("x"))(x)


def pure_per_device(x):
    body = lambda tile: jax.pure_callback(told_tile, kind(2), tile)  # noqa: E731
    return jax.shard_map(body, mesh=EIGHT, in_specs=P("x"), out_specs=P("x"))(x)


def told_tile(a):
    return np.asarray(a) * np.float32(3)


def element(x):
    return jax.pure_callback(np.sin, kind(), x, vmap_method="expand_dims")


PROGRAMS = {
    "debug": lambda x: (jax.debug.callback(note, x), x * 2)[1],
    "debug, twice the same": lambda x: (jax.debug.callback(note, x.sum()), jax.debug.callback(note, x.sum()), x)[2],
    "debug of a constant": lambda x: (jax.debug.callback(note, jnp.ones(3)), x * 2)[1],
    "pure": lambda x: jax.pure_callback(np.sin, kind(16), x) * 2,
    "pure, of a constant": lambda x: x + jax.pure_callback(np.sin, kind(), jnp.float32(2)),
    "pure, of several types": lambda x: jax.pure_callback(both, (kind(16, dtype=bool), kind(16, dtype=jnp.int32)), x),
    "pure, whose result is split": lambda x: jax.lax.with_sharding_constraint(
        jax.pure_callback(np.sin, kind(16), x), NamedSharding(EIGHT, P("x"))
    ),
    "pure, on another device": lambda x: (
        x
        + jax.pure_callback(
            lambda a: (note(a), np.float32(2))[1], kind(), x[3], sharding=SingleDeviceSharding(jax.devices()[5])
        )
    ),
    "vmapped": jax.vmap(element),
    "io": lambda x: io_callback(told, kind(), x),
    "in a loop": looped,
    "in a branch": branched,
    "on each device of a shard_map": per_device,
    "pure, on each device of a shard_map": pure_per_device,
    "differentiated": jax.grad(lambda x: (jax.debug.callback(note, x.sum()), (x**2).sum())[1]),
}


def run(function, x):
    SEEN.clear()
    result = jax.block_until_ready(jax.jit(lambda x: function(x))(x))
    jax.effects_barrier()
    return jax.tree.leaves(result), list(SEEN)


@pytest.mark.turns(2)
@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_callbacks_are_made_as_in_plain_jax(shardy, function):
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    wanted, heard = run(function, x)
    before = spj.stats()
    with spj.use():
        found, seen = run(function, x)
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] == before["partitioned"] + 1
    assert seen == heard
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_a_printed_line_is_printed_once(capfd):
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    with spj.use():
        jax.jit(lambda x: (jax.debug.print("the sum is {}", x.sum()), x)[1])(x).block_until_ready()
        jax.effects_barrier()
    assert capfd.readouterr().out == "the sum is 120.0\n"


@pytest.mark.parametrize("name", ["debug", "pure"])
def test_the_text_of_a_program_that_calls_python_is_refused(name):
    """XLA ends the process where it runs such a text: no function stands behind the number in it."""
    x = jax.ShapeDtypeStruct((16,), np.float32, sharding=NamedSharding(EIGHT, P("x")))
    module = shardpass.run_pipeline(jax.jit(PROGRAMS[name]).lower(x).as_text(), "partition")
    with pytest.raises(ShardpassError, match=r"SP508"):
        shardpass.compile(module)


def test_tiles_that_are_shown_are_those_of_plain_jax(shardy):
    """A row of a split array is brought whole, the next operand is split; a search would split both."""
    pair = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), P("x"))
    rows = jax.device_put(np.arange(4).reshape(2, 2), pair)
    columns = jax.device_put(np.arange(4).reshape(2, 2) + 6, pair)

    def shown(row, column):
        jax.debug.callback(lambda *tiles: SEEN.append([np.asarray(t).tolist() for t in tiles]), row, column, **TILES)

    def tiles():
        SEEN.clear()
        jax.jit(jax.vmap(shown, in_axes=(0, 1)))(rows, columns)
        jax.effects_barrier()
        return sorted(SEEN)

    wanted = tiles()
    with spj.use():
        assert tiles() == wanted
