"""Shardings that JAX's own tests expect of results, which hold under the hook too.

Each case transcribes a test of jax v0.10.2 (tests/pjit_test.py, shard_alike_test.py, array_test.py), with the
sharding that it expects. ``python -m tools.prove.jax_suites`` runs the files themselves, where a checkout is at hand.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


def mesh_of(*sizes, names="xy", kind=AxisType.Auto):
    """The first devices, as JAX's ``jtu.create_mesh`` orders them."""
    devices = jax.devices()[: int(np.prod(sizes))]
    return jax.make_mesh(sizes, tuple(names[: len(sizes)]), axis_types=(kind,) * len(sizes), devices=devices)


@pytest.mark.parametrize(("sizes", "shape"), [((4, 2), (2, 8)), ((2, 2), (4, 8)), ((2, 1), (4, 8))])
def test_a_product_keeps_the_rows_of_its_left_operand(sizes, shape):
    """test_pjit_array_multi_input_multi_output: ``a @ a.T`` with ``a`` over x and y."""
    a = jax.device_put(X, NamedSharding(mesh_of(*sizes), P("x", "y")))
    with spj.use(strict=True):
        product = jax.jit(lambda tree: tree)(a @ a.T)
    assert product.addressable_shards[0].data.shape == shape
    np.testing.assert_array_equal(product, X @ X.T)


def test_what_comes_in_whole_goes_out_whole():
    """test_pmap_sharding_input_to_pjit_multi_device, with ``pmap``'s result placed by hand."""
    first = jax.device_put(np.arange(4), NamedSharding(mesh_of(4), P()))
    with spj.use(strict=True):
        results = jax.jit(lambda x, y: (x * 2, y * 2))(first, jnp.arange(4))
    for one in results:
        assert len(one.devices()) == 4
        assert one.is_fully_replicated
        np.testing.assert_array_equal(one, np.arange(4) * 2)


def test_elements_of_a_whole_array_are_whole():
    """test_array_iter_replicated_multi_device."""
    array = jax.device_put(X, NamedSharding(mesh_of(4, 2), P(None)))
    with spj.use(strict=True):
        rows = list(array)
    assert all(len(row.devices()) == 8 and row.is_fully_replicated for row in rows)
    np.testing.assert_array_equal(np.stack(rows), X)


@pytest.mark.parametrize("spec", [P("x", None), P("x", "y")])
def test_an_open_result_over_auto_axes(spec):
    """test_only_auto, test_auto_user."""
    mesh = mesh_of(2, 2)
    array = jax.device_put(X, NamedSharding(mesh, spec))
    with spj.use(strict=True), jax.set_mesh(mesh):
        product = jax.jit(lambda x, y: jnp.sin(x * 2) @ y)(array, array.T)
    assert product.sharding.is_equivalent_to(NamedSharding(mesh, P("x", None)), 2)


def test_what_an_abstract_mesh_makes_is_whole():
    """test_use_abstract_mesh_override."""
    mesh = mesh_of(2, kind=AxisType.Explicit)
    with jax.set_mesh(mesh), jax.sharding.use_abstract_mesh(AbstractMesh((2,), ("y",))):
        plain = jnp.arange(8)
        with spj.use(strict=True):
            counted = jnp.arange(8)
    assert counted.sharding.spec == plain.sharding.spec  # P() with jax 0.10, P(None) with 0.12
    assert counted.sharding.is_fully_replicated
    np.testing.assert_array_equal(counted, np.arange(8))


def test_the_key_of_random_bits_is_whole():
    """test_rng_bit_generator."""
    key, mesh = np.array((1, 2, 3, 4), np.uint32), mesh_of(2, kind=AxisType.Explicit)
    with spj.use(strict=True), jax.set_mesh(mesh):
        after, bits = jax.jit(lambda key: lax.rng_bit_generator(key, shape=(4, 8), out_sharding=P("x")))(key)
    assert after.sharding == NamedSharding(mesh, P())
    assert bits.sharding == NamedSharding(mesh, P("x", None))


def test_arrays_sharded_alike():
    """test_arange_shard_alike_jit, test_double_shard_alike, test_vmap_one_mapped."""
    module = pytest.importorskip("jax.experimental.shard_alike", reason="jax 0.12 has no shard_alike any more")
    shard_alike = module.shard_alike
    mesh = mesh_of(2, 2)
    both = NamedSharding(mesh, P("x", "y"))

    def counted(x):
        return shard_alike(x, jnp.arange(16.0).reshape(8, 2))[1]

    def twice(x):
        _, y = shard_alike(x, x * 2)
        return shard_alike(y @ y.T, jnp.arange(64.0).reshape(8, 8))

    def mapped(x):
        return jax.vmap(lambda one: shard_alike(one, x)[0])(jnp.tile(x, [8, 1]))

    with spj.use(strict=True):
        assert jax.jit(counted)(jax.device_put(X, both)).sharding == both
        for one in jax.jit(twice)(jax.device_put(X, both)):
            assert one.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
        row = jax.device_put(X[0], NamedSharding(mesh, P("y")))
        assert jax.jit(mapped)(row).sharding == NamedSharding(mesh, P(None, "y"))
