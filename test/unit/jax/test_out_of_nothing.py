"""Collectives of values that no argument reaches: XLA must be told that they are per-device, in its own way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"], autouse=True)
def shardy(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", before)


def split(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def drawn():
    return split(jax.random.randint(jax.random.key(0), (16, 8), 0, 9), "a", "b")


PROGRAMS = {
    "reduced": lambda: drawn().sum(),
    "reduced in part": lambda: split(drawn().sum(axis=0), "a"),
    "gathered": lambda: split(drawn(), None, None) * 2,
    "exchanged": lambda: split(drawn(), "b", "a") * 2,
    "in a loop": lambda: jax.lax.fori_loop(0, 3, lambda i, c: c + drawn().sum(axis=0) * i, jnp.zeros(8, jnp.int32)),
    "cut": lambda: split(drawn()[3:7], None, "a"),
}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_without_arguments(function):
    wanted = jax.jit(lambda: function())()
    before = spj.stats()
    with spj.use():
        found = jax.jit(lambda: function())()
    assert spj.stats()["partitioned"] == before["partitioned"] + 1
    assert spj.stats()["fallback"] == before["fallback"]
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
