"""Simulations: stencils, particles, transforms, graphs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program


@program(mesh=(4, 2))
def game_of_life(pin: Pin) -> Case:
    """Four generations by convolution over a board split in both dimensions."""

    def apply(board: Any) -> Any:
        kernel = jnp.ones((1, 1, 3, 3)).at[0, 0, 1, 1].set(0)

        def body(_: Any, board: Any) -> Any:
            near = lax.conv_general_dilated(board[None, None], kernel, (1, 1), "SAME")[0, 0]
            return jnp.where((near == 3) | ((near == 2) & (board == 1)), 1.0, 0.0)

        return lax.fori_loop(0, 4, body, board)

    def oracle(board: Any) -> Any:
        for _ in range(4):
            p = np.pad(board, 1)
            near = sum(p[i : i + 32, j : j + 32] for i in range(3) for j in range(3)) - board
            board = ((near == 3) | ((near == 2) & (board == 1))).astype(np.float32)
        return board

    board = (Draw(70).uniform(32, 32) < 0.4).astype(np.float32)
    return Case(apply, (board,), (P("x", "y"),), P("x", "y"), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def jacobi_roll(pin: Pin) -> Case:
    """Heat on a torus: eight steps of roll in both split dimensions."""

    def apply(u: Any) -> Any:
        def body(_: Any, u: Any) -> Any:
            return 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1))

        return lax.fori_loop(0, 8, body, u)

    def oracle(u: Any) -> Any:
        for _ in range(8):
            u = 0.25 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))
        return u

    return Case(apply, (Draw(71).normal(32, 32),), (P("x", "y"),), P("x", "y"), oracle)


@program(mesh=(8,), tolerance=1e-4)
def jacobi_slices(pin: Pin) -> Case:
    """Poisson's equation by slices of a padded array, rows over all devices, five steps unrolled."""

    def apply(u: Any, f: Any) -> Any:
        for _ in range(5):
            p = jnp.pad(u, 1)
            u = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - f)
        return u

    def oracle(u: Any, f: Any) -> Any:
        for _ in range(5):
            p = np.pad(u, 1)
            u = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - f)
        return u

    draw = Draw(72)
    return Case(apply, (draw.normal(64, 32), draw.normal(64, 32)), (P("x"), P("x")), P("x"), oracle)


@program(mesh=(8,), tolerance=1e-4)
def advection_uneven(pin: Pin) -> Case:
    """Upwind advection over 101 cells on eight devices, by roll, ten steps."""

    def apply(u: Any) -> Any:
        def body(_: Any, u: Any) -> Any:
            return pin(u - 0.3 * (u - jnp.roll(u, 1)), "x")

        return lax.fori_loop(0, 10, body, pin(u, "x")).sum(), lax.fori_loop(0, 10, body, pin(u, "x")).max()

    def oracle(u: Any) -> Any:
        for _ in range(10):
            u = u - np.float32(0.3) * (u - np.roll(u, 1))
        return u.sum(), u.max()

    return Case(apply, (np.abs(Draw(73).normal(101)),), (P(),), (P(), P()), oracle)


@program(mesh=(8,), tolerance=1e-4)
def nbody(pin: Pin) -> Case:
    """Leapfrog of 64 bodies, each device the forces on its own."""

    def force(x: Any, mass: Any) -> Any:
        apart = x[None] - x[:, None]
        return jnp.einsum("ijd,ij,j->id", apart, (jnp.sum(apart**2, -1) + 0.01) ** -1.5, mass)

    def apply(x: Any, v: Any, mass: Any) -> Any:
        def body(_: Any, state: Any) -> Any:
            x, v = state
            v = v + 0.01 * force(x, mass)
            return x + 0.01 * v, v

        return lax.fori_loop(0, 3, body, (x, v))

    def oracle(x: Any, v: Any, mass: Any) -> Any:
        for _ in range(3):
            apart = x[None] - x[:, None]
            v = v + 0.01 * np.einsum("ijd,ij,j->id", apart, ((apart**2).sum(-1) + 0.01) ** -1.5, mass)
            x = x + 0.01 * v
        return x, v

    draw = Draw(74)
    arguments = (draw.normal(64, 3), draw.normal(64, 3), draw.uniform(64))
    return Case(apply, arguments, (P("x"), P("x"), P("x")), (P("x"), P("x")), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def fft_convolution(pin: Pin) -> Case:
    """Circular convolution of a batch of images by fft2; batch over x, channels over y."""

    def apply(x: Any, k: Any) -> Any:
        return jnp.fft.irfft2(jnp.fft.rfft2(x) * jnp.fft.rfft2(k)[None], s=(16, 16))

    def oracle(x: Any, k: Any) -> Any:
        return np.fft.irfft2(np.fft.rfft2(x) * np.fft.rfft2(k)[None]).astype(np.float32)

    draw = Draw(75)
    return Case(apply, (draw.normal(8, 4, 16, 16), draw.normal(4, 16, 16)), (P("x", "y"), P("y")), P("x", "y"), oracle)


@program(mesh=(8,), tolerance=1e-4)
def spectral_poisson(pin: Pin) -> Case:
    """Poisson's equation by fft over both dimensions of a grid split by rows: a transposition between them."""

    def apply(f: Any) -> Any:
        n = f.shape[0]
        k = jnp.fft.fftfreq(n) * n
        square = (k[:, None] ** 2 + k[None, :] ** 2).at[0, 0].set(1.0)
        rows = pin(jnp.fft.fft(f.astype(jnp.complex64), axis=1), "x", None)
        both = jnp.fft.fft(pin(rows, None, "x"), axis=0) / square
        back = pin(jnp.fft.ifft(both, axis=0), None, "x")
        return jnp.fft.ifft(pin(back, "x", None), axis=1).real

    def oracle(f: Any) -> Any:
        n = f.shape[0]
        k = np.fft.fftfreq(n) * n
        square = k[:, None] ** 2 + k[None, :] ** 2
        square[0, 0] = 1
        return np.fft.ifft2(np.fft.fft2(f) / square).real.astype(np.float32)

    return Case(apply, (Draw(76).normal(32, 32),), (P("x"),), P("x"), oracle)


@program(mesh=(8,), tolerance=1e-4)
def pagerank(pin: Pin) -> Case:
    """Ten rounds by gather and segment_sum; edges split over all devices, ranks whole."""
    draw = Draw(77)

    def apply(source: Any, target: Any) -> Any:
        degree = jax.ops.segment_sum(jnp.ones(source.shape), source, 50)

        def body(_: Any, rank: Any) -> Any:
            sent = (rank / jnp.maximum(degree, 1))[source]
            return 0.15 / 50 + 0.85 * jax.ops.segment_sum(sent, target, 50)

        return lax.fori_loop(0, 10, body, jnp.full(50, 1 / 50))

    def oracle(source: Any, target: Any) -> Any:
        degree, rank = np.bincount(source, minlength=50), np.full(50, 1 / 50)
        for _ in range(10):
            rank = 0.15 / 50 + 0.85 * np.bincount(target, (rank / np.maximum(degree, 1))[source], 50)
        return rank.astype(np.float32)

    return Case(apply, (draw.integers(50, 256), draw.integers(50, 256)), (P("x"), P("x")), P(), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def graph_network(pin: Pin) -> Case:
    """Gradients of a graph convolution: messages by segment_max and segment_sum; edges over x, features over y."""
    draw = Draw(78)

    def value(w: Any, nodes: Any, source: Any, target: Any) -> Any:
        messages = jax.nn.relu(nodes @ w)[source]
        total = jax.ops.segment_sum(messages, target, 24)
        most = jnp.maximum(jax.ops.segment_max(messages, target, 24), 0)
        return jnp.mean((total + most) ** 2)

    arguments = (draw.weight(16, 32), draw.normal(24, 16), draw.integers(24, 64), draw.integers(24, 64))
    return Case(jax.value_and_grad(value), arguments, (P(None, "y"), P(), P("x"), P("x")), (P(), P(None, "y")))


@program(mesh=(2, 2, 2), tolerance=1e-4)
def wave_3d(pin: Pin) -> Case:
    """The wave equation on a cube split in all three dimensions, by pad and slices."""

    def laplace(u: Any) -> Any:
        p = jnp.pad(u, 1)
        inner = slice(1, -1)
        near = p[:-2, inner, inner] + p[2:, inner, inner] + p[inner, :-2, inner] + p[inner, 2:, inner]
        return near + p[inner, inner, :-2] + p[inner, inner, 2:] - 6 * u

    def apply(u: Any, old: Any) -> Any:
        def body(_: Any, state: Any) -> Any:
            u, old = state
            return 2 * u - old + 0.1 * laplace(u), u

        return lax.fori_loop(0, 3, body, (u, old))

    draw = Draw(79)
    u, old = draw.normal(12, 12, 12), draw.normal(12, 12, 12)
    return Case(apply, (u, old), (P("x", "y", "z"),) * 2, (P("x", "y", "z"),) * 2)
