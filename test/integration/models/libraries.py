"""Programs of libraries that JAX's users have: flax, optax, equinox, diffrax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .program import Case, Draw, P, Pin, program


def split_last(tree: Any) -> Any:
    """Weights of two or more dimensions by their last dimension over y, where two devices divide it."""

    def one(a: Any) -> Any:
        even = np.ndim(a) >= 2 and np.shape(a)[-1] % 2 == 0
        return P(*[None] * (np.ndim(a) - 1), "y") if even else P()

    return jax.tree.map(one, tree)


def arrays(tree: Any) -> Any:
    """The same tree with small random arrays, equal for every version of the libraries."""
    draw = Draw(100)
    return jax.tree.map(lambda a: draw.normal(*a.shape, scale=0.2).astype(a.dtype), tree)


def zeros_of(tree: Any) -> Any:
    return jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), tree)


@program(mesh=(4, 2), tolerance=1e-4, needs="flax")
def flax_transformer_train(pin: Pin) -> Case:
    """A step of optax's clipped adamw on a flax encoder; batch over x, weights over y."""
    import flax.linen as nn
    import optax  # type: ignore[import-untyped]

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(32, 32)(tokens)
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(y, y)
            y = nn.Dense(64)(nn.LayerNorm()(x))
            return nn.Dense(32)(x + nn.Dense(32)(nn.gelu(y)))

    draw = Draw(101)
    tokens = draw.integers(32, 8, 12)
    model, rule = Encoder(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2, eps=1e-3))
    shapes = jax.eval_shape(model.init, jax.random.key(0), tokens)
    p = arrays(shapes)
    state = zeros_of(jax.eval_shape(rule.init, shapes))

    def loss(p: Any, tokens: Any) -> Any:
        scores = model.apply(p, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()

    def step(p: Any, state: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, tokens)
        updates, state = rule.update(grads, state, p)
        return value, optax.apply_updates(p, updates), state

    split, states = split_last(p), split_last(state)
    return Case(step, (p, state, tokens), (split, states, P("x")), (P(), split, states))


@program(mesh=(8,), tolerance=1e-4, needs="flax")
def flax_cnn_train(pin: Pin) -> Case:
    """A step of optax's momentum on a flax CNN with BatchNorm's running statistics and pooling, data parallel."""
    import flax.linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for width in (8, 16):
                x = nn.Conv(width, (3, 3))(x)
                x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
                x = nn.max_pool(x, (2, 2), strides=(2, 2))  # type: ignore[no-untyped-call]
            return nn.Dense(10)(x.reshape(x.shape[0], -1))

    draw = Draw(102)
    images, labels = draw.normal(16, 8, 8, 3), draw.integers(10, 16)
    model, rule = Net(), optax.sgd(0.1, momentum=0.9)
    shapes = jax.eval_shape(model.init, jax.random.key(0), images)
    p, averages = arrays(shapes["params"]), arrays(shapes["batch_stats"])
    state = zeros_of(jax.eval_shape(rule.init, shapes["params"]))

    def loss(p: Any, averages: Any, images: Any, labels: Any) -> Any:
        scores, new = model.apply({"params": p, "batch_stats": averages}, images, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), new["batch_stats"]

    def step(p: Any, averages: Any, state: Any, images: Any, labels: Any) -> Any:
        (value, averages), grads = jax.value_and_grad(loss, has_aux=True)(p, averages, images, labels)
        updates, state = rule.update(grads, state, p)
        return value, optax.apply_updates(p, updates), averages, state

    return Case(step, (p, averages, state, images, labels), (P(), P(), P(), P("x"), P("x")), (P(), P(), P(), P()))


@program(mesh=(4, 2), tolerance=1e-4, needs="optax")
def optax_lion(pin: Pin) -> Case:
    """Two steps of optax's Lion with a cosine schedule on logistic regression; samples over x, features over y."""
    import optax

    draw = Draw(103)
    rule = optax.lion(optax.cosine_decay_schedule(0.1, 10))
    w = draw.normal(64)
    shape = jax.ShapeDtypeStruct(w.shape, w.dtype)
    state = zeros_of(jax.eval_shape(rule.init, shape))

    def train(w: Any, state: Any, x: Any, y: Any) -> Any:
        for _ in range(2):
            value, grads = jax.value_and_grad(lambda w: optax.sigmoid_binary_cross_entropy(x @ w, y).mean())(w)
            updates, state = rule.update(grads, state, w)
            w = optax.apply_updates(w, updates)
        return value, w

    states = jax.tree.map(lambda a: P("y") if np.ndim(a) else P(), state)
    arguments = (w, state, draw.normal(32, 64), (draw.uniform(32) < 0.5).astype(np.float32))
    return Case(train, arguments, (P("y"), states, P("x", "y"), P("x")), (P(), P("y")))


@program(mesh=(4, 2), tolerance=1e-4, needs="equinox")
def equinox_mlp_train(pin: Pin) -> Case:
    """Gradients of an equinox MLP under vmap; batch over x, hidden units over y."""
    import equinox as eqx

    model = eqx.filter_eval_shape(eqx.nn.MLP, 16, 8, 32, 2, key=jax.random.key(0))
    shapes, rest = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    p = arrays(shapes)
    leaves, tree = jax.tree.flatten(p)

    def loss(leaves: Any, x: Any, y: Any) -> Any:
        model = eqx.combine(jax.tree.unflatten(tree, leaves), rest)
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    split = [P("y", None) if np.ndim(a) == 2 else P("y") for a in leaves]
    draw = Draw(104)
    arguments = (leaves, draw.normal(16, 16), draw.normal(16, 8))
    return Case(jax.value_and_grad(loss), arguments, (split, P("x"), P("x")), (P(), split))


@program(mesh=(8,), tolerance=1e-3, needs="diffrax")
def diffrax_ode(pin: Pin) -> Case:
    """A batch of Lotka-Volterra systems solved by diffrax with an adaptive step, one solver for all; batch over x."""
    import diffrax

    def field(t: Any, y: Any, args: Any) -> Any:
        a, b = y[:, 0], y[:, 1]
        return jnp.stack([1.1 * a - 0.4 * a * b, 0.1 * a * b - 0.4 * b], axis=1)

    def solve(y: Any) -> Any:
        term, solver = diffrax.ODETerm(field), diffrax.Tsit5()
        control = diffrax.PIDController(rtol=1e-4, atol=1e-4)
        found = diffrax.diffeqsolve(
            term, solver, 0.0, 2.0, 0.1, y, stepsize_controller=control, max_steps=64, throw=False
        )
        return found.ys[0]

    return Case(solve, (5 + Draw(105).uniform(16, 2),), (P("x"),), P("x"))
