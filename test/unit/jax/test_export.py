"""Programs that went through `jax.export` are partitioned as those that did not."""

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:8])
X = np.arange(128, dtype=np.float32).reshape(8, 16) % 7


def summed(tile):
    return jax.lax.psum(tile, "a")


PROGRAMS = {
    "jit": jax.jit(lambda x: (x @ x.T).sum(0), out_shardings=NamedSharding(MESH, P("a"))),
    "shard_map": jax.jit(jax.shard_map(summed, mesh=MESH, in_specs=P("a", "b"), out_specs=P(None, "b"))),
    "partly manual": jax.jit(jax.shard_map(summed, mesh=MESH, in_specs=P("a"), out_specs=P(), axis_names={"a"})),
}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_an_exported_program_is_partitioned(function):
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    read = export.deserialize(export.export(function)(x).serialize())
    wanted = function(x)
    before = spj.stats()
    with spj.use():
        found = jax.jit(lambda x: read.call(x))(x)
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] > before["partitioned"]
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6)
