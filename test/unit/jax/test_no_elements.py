"""Arrays without elements: XLA makes constants of them and reports another sharding, which JAX takes as it comes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = Mesh(np.array(jax.devices()[:4]), ("x",))
SPLIT = NamedSharding(MESH, P("x"))


def mapped(body):
    return lambda x: jax.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(x)


PROGRAMS = {
    "a slice of no rows": (mapped(lambda t: t[:0]), (0, 3)),
    "a slice of no columns": (mapped(lambda t: t[:, :0]), (8, 0)),
    "of the whole array": (lambda x: jax.lax.with_sharding_constraint(x[:, :0], SPLIT), (8, 0)),
}


@pytest.mark.parametrize(("function", "shape"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_result_without_elements_is_partitioned(shardy, function, shape):
    with spj.use(strict=True):
        x = jax.device_put(jnp.ones((8, 3)), SPLIT)
        found = jax.jit(lambda x: function(x))(x)
        doubled = jax.jit(lambda x: x * 2)(found)
    for array in (found, doubled):
        assert array.shape == shape
        assert {shard.data.shape for shard in array.addressable_shards} == {array.sharding.shard_shape(shape)}
        assert np.asarray(array).tolist() == np.zeros(shape).tolist()


def test_an_argument_without_elements_is_partitioned(shardy):
    with spj.use(strict=True):
        empty = jax.device_put(jnp.zeros((8, 0)), SPLIT)
        sums = jax.jit(mapped(lambda t: t.sum(1) + 1))(empty)
    assert sums.sharding.spec == P("x")
    np.testing.assert_array_equal(np.asarray(sums), np.ones(8))
