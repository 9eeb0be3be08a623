"""Random numbers and iterated samplers: the numbers must be those of one device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program

KEY = np.array([3, 4], np.uint32)


def key_of(data: Any) -> Any:
    return jax.random.wrap_key_data(data, impl="threefry2x32")


@program(mesh=(4, 2), tolerance=1e-4)
def dropout_train(pin: Pin) -> Case:
    """Gradients of two layers with dropout by threefry; batch over x, units over y."""
    draw = Draw(60)

    def loss(p: Any, x: Any, key: Any) -> Any:
        first, second = jax.random.split(key_of(key))
        h = jax.nn.relu(x @ p["w1"])
        h = jnp.where(jax.random.bernoulli(first, 0.8, h.shape), h / 0.8, 0)
        y = h @ p["w2"]
        y = jnp.where(jax.random.bernoulli(second, 0.8, y.shape), y / 0.8, 0)
        return jnp.mean(y**2)

    p = {"w1": draw.weight(32, 64), "w2": draw.weight(64, 32)}
    split = {"w1": P(None, "y"), "w2": P("y", None)}
    return Case(jax.value_and_grad(loss), (p, draw.normal(16, 32), KEY), (split, P("x"), P()), (P(), split))


@program(mesh=(4, 2), tolerance=1e-4)
def diffusion_sampler(pin: Pin) -> Case:
    """Ancestral sampling by fori_loop: a denoiser, and noise drawn inside; batch over x, units over y."""
    draw = Draw(61)

    def apply(p: Any, x: Any, key: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            x, key = carry
            key, sub = jax.random.split(key)
            t = jnp.full((x.shape[0], 1), 1 - i / 6.0)
            guess = jax.nn.silu(jnp.concatenate([x, t], -1) @ p["up"]) @ p["down"]
            x = 0.9 * x - 0.2 * guess + 0.1 * jax.random.normal(sub, x.shape)
            return pin(x, "x", None), key

        return lax.fori_loop(0, 6, body, (x, key_of(key)))[0]

    p = {"up": draw.weight(33, 64), "down": draw.weight(64, 32)}
    return Case(apply, (p, draw.normal(16, 32), KEY), ({"up": P(None, "y"), "down": P("y")}, P("x"), P()), P("x"))


@program(mesh=(8,), tolerance=1e-4)
def monte_carlo(pin: Pin) -> Case:
    """Prices of an option by 4096 paths drawn where they are used, split over all devices."""

    def apply(key: Any, strike: Any) -> Any:
        shocks = pin(jax.random.normal(key_of(key), (4096, 12)), "x", None)
        ends = jnp.exp(jnp.cumsum(0.05 * shocks, axis=1)[:, -1])
        pay = jnp.maximum(ends[:, None] - strike[None, :], 0)
        return pay.mean(0), pay.std(0)

    return Case(apply, (KEY, np.linspace(0.8, 1.2, 5).astype(np.float32)), (P(), P()), (P(), P()))


@program(mesh=(4, 2), tolerance=1e-4)
def random_bits_rbg(pin: Pin) -> Case:
    """Uniform numbers of the hardware generator, split in both dimensions, and a shuffle."""

    def apply(x: Any, key: Any) -> Any:
        keys = jax.random.split(jax.random.wrap_key_data(key, impl="rbg"), 2)
        noisy = x + pin(jax.random.uniform(keys[0], x.shape), "x", "y")
        return noisy, jax.random.permutation(key_of(key[:2]), x.shape[0])

    arguments = (Draw(62).normal(16, 32), np.array([1, 2, 3, 4], np.uint32))
    return Case(apply, arguments, (P("x", "y"), P()), (P("x", "y"), P()))


@program(mesh=(8,), tolerance=1e-4)
def metropolis(pin: Pin) -> Case:
    """Forty chains of Metropolis in a scan, chains over all devices."""

    def apply(x: Any, key: Any) -> Any:
        def energy(x: Any) -> Any:
            return jnp.sum(x**2 + 0.1 * x**4, -1)

        def body(carry: Any, key: Any) -> Any:
            x = carry
            one, two = jax.random.split(key)
            new = x + 0.5 * jax.random.normal(one, x.shape)
            go = jnp.log(jax.random.uniform(two, x.shape[:1]) + 1e-9) < energy(x) - energy(new)
            x = jnp.where(go[:, None], new, x)
            return x, jnp.mean(energy(x))

        return lax.scan(body, x, jax.random.split(key_of(key), 5))

    return Case(apply, (Draw(63).normal(40, 3), KEY), (P("x"), P()), (P("x"), P()))
