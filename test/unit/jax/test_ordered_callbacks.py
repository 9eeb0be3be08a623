"""Ordered callbacks: in the order of the program, once, and in the order of programs."""

import re

import jax
import numpy as np
import pytest
from jax.experimental import io_callback, pallas
from jax.experimental.pallas import tpu
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

EIGHT = Mesh(np.array(jax.devices()[:8]), ("x",))
SEEN = []


def note(*values):
    SEEN.append([np.asarray(value).tolist() for value in values])


def tell(*values):
    io_callback(note, None, *values, ordered=True)


def whole(shape=(16,)):
    return jax.ShapeDtypeStruct(shape, np.float32)


def many(x):
    for number in range(12):
        tell(number, x.sum() + number)
    return x * 2


def results(x):
    first = io_callback(lambda a: (note(a), np.asarray(a) * 2)[1], whole(), x, ordered=True)
    second = io_callback(lambda a, b: (note(a), np.asarray(a) + b)[1], whole(), first, x, ordered=True)
    return first, second


def looped(x):
    def odd(c):
        tell(c.sum())
        return c + 1

    return jax.lax.fori_loop(0, 5, lambda i, c: jax.lax.cond(i % 2 == 1, odd, lambda c: c, c), x)


def among_others(x):
    tell(1)
    y = jax.pure_callback(np.sin, whole(), x)
    tell(2, y)
    return y


PROGRAMS = {"many": many, "with results": results, "in loops and branches": looped, "among others": among_others}


def run(jitted, x, times=1):
    SEEN.clear()
    found = [jax.block_until_ready(jitted(x)) for _ in range(times)]
    jax.effects_barrier()
    return jax.tree.leaves(found[0]), list(SEEN)


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_ordered_callbacks_are_made_in_order(shardy, function):
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    wanted, heard = run(jax.jit(lambda x: function(x)), x)
    before = spj.stats()
    with spj.use():
        jitted = jax.jit(lambda x: function(x))
        found, seen = run(jitted, x)
        assert seen == heard
        assert run(jitted, x, times=5)[1] == 5 * heard
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] > before["partitioned"]
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_an_ordered_callback_without_results_sends_nothing():
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    with spj.use():
        jitted = jax.jit(lambda x: (tell(1), tell(2), x * 2)[2])
        hlo = jitted.lower(x).compile().as_text()
        run(jitted, x)
    assert SEEN == [[1], [2]]
    assert not re.search(r" (all-reduce|all-gather|collective-permute)\(", hlo)


def test_donated_arguments_keep_their_places():
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    y = jax.device_put(np.ones(16, np.float32), NamedSharding(EIGHT, P("x")))
    with spj.use():
        jitted = jax.jit(lambda x, y: (tell(y.sum()), x + 1)[1], donate_argnums=0)
        found = jitted(x, y)
    jax.effects_barrier()
    assert x.is_deleted()
    assert not y.is_deleted()
    np.testing.assert_array_equal(np.asarray(found), np.arange(1, 17))


def test_each_device_of_a_shard_map_keeps_its_own_order(shardy):
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))

    def tile(t):
        tell(jax.lax.axis_index("x"), 1)
        tell(jax.lax.axis_index("x"), 2)
        return t * 2

    function = jax.shard_map(tile, mesh=EIGHT, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    before = spj.stats()["fallback"]
    with spj.use():
        run(jax.jit(function), x)
    assert spj.stats()["fallback"] == before
    assert [[n for d, n in SEEN if d == device] for device in range(8)] == [[1, 2]] * 8


def doubled(x):
    def kernel(source, target):
        target[...] = source[...] * 2

    kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(kernel, out_shape=kind, interpret=tpu.InterpretParams())(x)


@pytest.mark.parametrize("in_shard_map", [False, True])
def test_a_pallas_kernel_for_tpus_is_interpreted(shardy, in_shard_map):
    """The interpreter of TPU kernels is ordered callbacks."""
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(EIGHT, P("x")))
    specs = {"mesh": EIGHT, "in_specs": P("x"), "out_specs": P("x"), "check_vma": False}
    function = jax.shard_map(doubled, **specs) if in_shard_map else doubled
    before = spj.stats()["fallback"]
    with spj.use():
        found = jax.jit(lambda x: function(x))(x)
    assert spj.stats()["fallback"] == before
    np.testing.assert_array_equal(np.asarray(found), 2 * np.arange(16))
