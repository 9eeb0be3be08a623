"""Axes may have any name: what jit and partition compute is right, and XLA lives."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

NAMES = ("a'b", "a'=1,'b", 'q"', "new\nline", "b\\c", "\u00e9", "x:(1)2", "a=b, (c)", "]}>", "\u202e", "\x00")
X = np.arange(64 * 16, dtype=np.float32).reshape(64, 16) / 1000
W = np.arange(16 * 8, dtype=np.float32).reshape(16, 8) / 1000


def function(x, w):
    return jnp.sin(x @ w).sum(0)


def laid_out(name):
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), (name, "y"))
    return NamedSharding(mesh, P(name, "y")), NamedSharding(mesh, P("y", None))


@pytest.mark.usefixtures("shardy")
@pytest.mark.parametrize("name", NAMES)
def test_within_use(name):
    x, w = map(jax.device_put, (X, W), laid_out(name))
    before = spj.stats()["partitioned"]
    with warnings.catch_warnings(), spj.use():
        warnings.simplefilter("error", spj.FallbackWarning)
        result = jax.jit(function)(x, w)
    assert spj.stats()["partitioned"] > before
    np.testing.assert_allclose(result, np.sin(X @ W).sum(0), rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_partition(name):
    result = spj.partition(function, in_shardings=laid_out(name))(X, W)
    np.testing.assert_allclose(result, np.sin(X @ W).sum(0), rtol=1e-5)


def test_a_result_keeps_the_name_of_its_axis():
    across, _ = laid_out("a'b\u00e9")
    with spj.use():
        result = jax.jit(lambda x: x * 2, out_shardings=across)(X)
    assert result.sharding == across
    np.testing.assert_array_equal(result, X * 2)


def test_names_that_are_taken():
    """``axis_0`` is the name that the mesh for XLA gives its first axis."""
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("\u00e9", "axis_0"))
    x = jax.device_put(X, NamedSharding(mesh, P("axis_0", "\u00e9")))
    with spj.use():
        result = jax.jit(lambda x: jnp.cumsum(x, 0) @ x.T)(x)
    np.testing.assert_allclose(result, np.cumsum(X, 0) @ X.T, rtol=1e-4)
