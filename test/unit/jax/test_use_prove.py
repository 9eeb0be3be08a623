"""``use(prove=True)``: programs that are proved are shardpass's, the others are left to XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError


@pytest.fixture
def placed():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    x = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
    return jax.device_put(x, NamedSharding(mesh, P("x")))


def product(x):
    return jnp.tanh(x.T @ x)


def called(x):
    """A callback, of which nothing is proved."""
    return jax.pure_callback(lambda y: np.asarray(y) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2


def test_a_proved_program_is_partitioned_by_shardpass(placed):
    before = spj.stats()
    with spj.use(prove=True):
        found = jax.jit(product)(placed)
    after = spj.stats()
    assert after["partitioned"] == before["partitioned"] + 1
    assert after["fallback"] == before["fallback"]
    x = np.asarray(placed)
    np.testing.assert_allclose(np.asarray(found), np.tanh(x.T @ x), rtol=1e-5)


def test_a_program_without_a_proof_is_left_to_xla(placed):
    jitted = jax.jit(called)
    before = spj.stats()["fallback"]
    with spj.use():  # is partitioned, where no proof is asked for
        jitted(placed)
    assert spj.stats()["fallback"] == before
    with spj.use(prove=True), pytest.warns(spj.FallbackWarning, match="it is not proved .*SP956"):
        found = jitted(placed)
    assert spj.stats()["fallback"] == before + 1
    assert spj.stats()["reasons"]["SP956"]["called"] >= 1
    np.testing.assert_allclose(np.asarray(found), (np.asarray(placed) + 1) * 2)


def test_strict_makes_it_an_error(placed):
    with spj.use(prove=True, strict=True), pytest.raises(ShardpassError, match="SP607"):
        jax.jit(called)(placed)


def test_other_pipelines_are_proved_too(placed):
    before = spj.stats()["fallback"]
    with spj.use(prove=True, pipeline="partition{nan=exact}"):
        found = jax.jit(product)(placed)
    assert spj.stats()["fallback"] == before
    x = np.asarray(placed)
    np.testing.assert_allclose(np.asarray(found), np.tanh(x.T @ x), rtol=1e-5)


def test_of_xlas_programs_no_proof_is_asked():
    with pytest.raises(ShardpassError, match="prove"), spj.use(prove=True, partitioner="xla"):
        pass
