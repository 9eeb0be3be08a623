"""``spj.pin`` in training loops of flax and equinox: the losses are those of the loops without."""

import warnings

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.jax import pinned as pinned_programs

STEPS = 200


@pytest.fixture
def mesh():
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))


@pytest.fixture(autouse=True)
def programs_are_pinned(monkeypatch):
    known = {}
    monkeypatch.setattr(pinned_programs, "_known", known)
    with warnings.catch_warnings():
        warnings.simplefilter("error", spj.FallbackWarning)
        yield
    assert any(pins.constraints for _, pins in known.values())


def batch(mesh, shape=(64, 16)):
    rng = np.random.default_rng(3)
    rows = NamedSharding(mesh, P("data"))
    x = jax.device_put(rng.normal(size=shape).astype(np.float32), rows)
    return x, jax.device_put(np.sin(np.asarray(x)[:, :4]), rows)


def placed(tree, mesh):
    """Matrices are split by rows over both axes, as a user with FSDP has them; the rest is whole."""

    def one(leaf):
        split = P(("data", "model")) if leaf.ndim == 2 and leaf.shape[0] % 8 == 0 else P()
        return jax.device_put(leaf, NamedSharding(mesh, split))

    return jax.tree.map(one, tree)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "shape", "width"),
    [({"verify": False}, (64, 16), 32), ({"trials": 8, "machine": "ideal"}, (16, 128), 512)],
    ids=["all", "compared"],
)
def test_flax(mesh, options, shape, width):
    """Every decision pinned; and, of a small batch beside wide weights, those with which XLA's program is cheaper."""

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(4)(nn.relu(nn.remat(nn.Dense)(width)(x)))

    model, optimizer = Model(), optax.adam(1e-2)
    x, y = batch(mesh, shape)

    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    def losses(step):
        params = placed(model.init(jax.random.key(0), x), mesh)
        state, found = optimizer.init(params), []
        for _ in range(STEPS):
            params, state, loss = step(params, state, x, y)
            found.append(float(loss))
        return found

    pinned = losses(jax.jit(spj.pin(step, **options), donate_argnums=(0, 1)))
    plain = losses(jax.jit(step))
    np.testing.assert_allclose(pinned, plain, rtol=1e-3, atol=1e-8)
    assert plain[-1] < plain[0] / 10


def test_equinox(mesh):
    x, y = batch(mesh)
    optimizer = optax.sgd(0.1)

    def step(model, state, x, y):
        loss, gradients = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optimizer.update(gradients, state)
        return eqx.apply_updates(model, updates), state, loss

    def losses(step):
        arrays, static = eqx.partition(eqx.nn.MLP(16, 4, 32, 2, key=jax.random.key(1)), eqx.is_array)
        model = eqx.combine(placed(arrays, mesh), static)
        state, found = optimizer.init(eqx.filter(model, eqx.is_array)), []
        for _ in range(20):
            model, state, loss = step(model, state, x, y)
            found.append(float(loss))
        return found

    pinned = losses(eqx.filter_jit(spj.pin(step, verify=False)))
    np.testing.assert_allclose(pinned, losses(eqx.filter_jit(step)), rtol=1e-4)


def test_batched(mesh):
    """Under vmap, where the axis that is mapped is split."""
    x, _ = batch(mesh)
    w = jnp.linspace(-1, 1, 16 * 8, dtype=jnp.float32).reshape(16, 8)
    found = jax.jit(jax.vmap(spj.pin(lambda row, w: jnp.tanh(row @ w), verify=False), (0, None)))(x, w)
    np.testing.assert_allclose(found, np.tanh(np.asarray(x) @ np.asarray(w)), rtol=1e-4, atol=1e-6)
