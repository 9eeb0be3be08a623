"""Linear algebra: products, iterations, factorisations on a batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program


def positive(draw: Draw, batch: int, size: int) -> Any:
    a = draw.normal(batch, size, size)
    return (a @ a.transpose(0, 2, 1) / size + 2 * np.eye(size)).astype(np.float32)


@program(mesh=(8,), tolerance=1e-3)
def cholesky_solve(pin: Pin) -> Case:
    """A batch of positive systems by Cholesky and two triangular solves, the batch over all devices."""
    draw = Draw(80)

    def apply(a: Any, b: Any) -> Any:
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)

    arguments = (positive(draw, 16, 8), draw.normal(16, 8, 3))
    return Case(apply, arguments, (P("x"), P("x")), P("x"), lambda a, b: np.linalg.solve(a, b))


@program(mesh=(4, 2), tolerance=1e-3)
def triangular_solve(pin: Pin) -> Case:
    """A batch of triangular systems; batch over x, right hand sides over y."""
    draw = Draw(81)
    a = (np.tril(draw.normal(8, 16, 16)) * 0.2 + 2 * np.eye(16)).astype(np.float32)

    def apply(a: Any, b: Any) -> Any:
        return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    specs = (P("x"), P("x", None, "y"))
    return Case(apply, (a, draw.normal(8, 16, 12)), specs, P("x", None, "y"), lambda a, b: np.linalg.solve(a, b))


@program(mesh=(4, 2), tolerance=1e-4)
def power_iteration(pin: Pin) -> Case:
    """The greatest eigenvalue of a matrix split in both dimensions, twelve rounds."""

    def apply(a: Any, v: Any) -> Any:
        def body(_: Any, v: Any) -> Any:
            w = a @ v
            return w / jnp.sqrt(jnp.sum(w * w))

        v = lax.fori_loop(0, 12, body, v)
        return v @ (a @ v), v

    def oracle(a: Any, v: Any) -> Any:
        for _ in range(12):
            v = a @ v
            v = v / np.sqrt((v * v).sum())
        return v @ (a @ v), v

    draw = Draw(82)
    a = draw.normal(64, 64, scale=0.2)
    arguments = ((a + a.T + np.diag([8.0] + [0.0] * 63)).astype(np.float32), np.ones(64, np.float32))
    return Case(apply, arguments, (P("x", "y"), P()), (P(), P()), oracle)


@program(mesh=(8,), tolerance=1e-3)
def conjugate_gradient(pin: Pin) -> Case:
    """Conjugate gradients in a while loop that ends by the residual; rows over all devices."""
    draw = Draw(83)

    def apply(a: Any, b: Any) -> Any:
        def going(state: Any) -> Any:
            _, _, _, rr, k = state
            return (rr > 1e-6) & (k < 20)

        def body(state: Any) -> Any:
            x, r, p, rr, k = state
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / rr * p, new, k + 1

        return lax.while_loop(going, body, (jnp.zeros_like(b), b, b, b @ b, 0))[0]

    arguments = (positive(draw, 1, 64)[0], draw.normal(64))
    return Case(apply, arguments, (P("x"), P("x")), P("x"), lambda a, b: np.linalg.solve(a, b))


@program(mesh=(4, 2), tolerance=1e-4)
def einsum_chain(pin: Pin) -> Case:
    """A chain of contractions over three, four and two dimensions, each split its own way."""
    draw = Draw(84)

    def apply(a: Any, b: Any, c: Any, d: Any) -> Any:
        return jnp.einsum("xyz,yzkl->xkl", jnp.einsum("abc,cd->abd", a, b), c) @ d

    arguments = (draw.normal(8, 8, 16), draw.weight(16, 4), draw.weight(8, 4, 8, 16, fan=32), draw.weight(16, 8))
    specs = (P("x", None, "y"), P("y", None), P(None, None, "y", None), P(None, "y"))

    def oracle(a: Any, b: Any, c: Any, d: Any) -> Any:
        return np.einsum("abd,bdkl->akl", a @ b, c) @ d

    return Case(apply, arguments, specs, P("x", None, "y"), oracle)


@program(mesh=(2, 2, 2), tolerance=1e-4)
def matmul_3d(pin: Pin) -> Case:
    """A product whose operands and result are each split over two of three axes."""
    draw = Draw(85)
    arguments = (draw.normal(64, 48), draw.weight(48, 32))
    return Case(lambda a, b: a @ b, arguments, (P("x", "z"), P("z", "y")), P("x", "y"), lambda a, b: a @ b)


@program(mesh=(4, 2), tolerance=1e-4)
def matmul_transposed(pin: Pin) -> Case:
    """a @ a.T and a.T @ a of one matrix split in both dimensions."""

    def apply(a: Any) -> Any:
        return a @ a.T, a.T @ a

    return Case(
        apply, (Draw(86).normal(32, 48),), (P("x", "y"),), (P("x", "y"), P("y", "x")), lambda a: (a @ a.T, a.T @ a)
    )


@program(mesh=(8,), tolerance=1e-3)
def normal_equations(pin: Pin) -> Case:
    """Linear regression: 515 samples over all devices (uneven), the normal equations solved on each."""
    draw = Draw(87)
    x = draw.normal(515, 6)

    def apply(x: Any, y: Any) -> Any:
        x, y = pin(x, "x", None), pin(y, "x")
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(x.T @ x + 0.01 * jnp.eye(6)), x.T @ y)

    def oracle(x: Any, y: Any) -> Any:
        return np.linalg.solve(x.T @ x + 0.01 * np.eye(6, dtype=np.float32), x.T @ y)

    return Case(apply, (x, (x @ np.arange(6) + 1).astype(np.float32)), (P(), P()), P(), oracle)


@program(mesh=(4, 2), tolerance=1e-3)
def pca(pin: Pin) -> Case:
    """The spectrum and projector of covariances of a batch of samples: eigh, a custom call; batch over x."""
    draw = Draw(88)

    def apply(x: Any) -> Any:
        x = x - x.mean(1, keepdims=True)
        values, vectors = jnp.linalg.eigh(jnp.einsum("bni,bnj->bij", x, x) / x.shape[1])
        top = vectors[:, :, -2:]
        return values, jnp.einsum("bni,bij,bkj->bnk", x, top, top)

    def oracle(x: Any) -> Any:
        x = x - x.mean(1, keepdims=True)
        values, vectors = np.linalg.eigh(np.einsum("bni,bnj->bij", x, x) / x.shape[1])
        top = vectors[:, :, -2:]
        return values, np.einsum("bni,bij,bkj->bnk", x, top, top)

    x = draw.normal(8, 32, 5) * np.array([1, 2, 3, 5, 9], np.float32)
    return Case(apply, (x,), (P("x", "y"),), (P("x"), P("x", "y")), oracle)


@program(mesh=(8,), tolerance=1e-3)
def gaussian_process(pin: Pin) -> Case:
    """A posterior mean: the kernel matrix built from points split over all devices, then a whole Cholesky solve."""
    draw = Draw(89)

    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-0.5 * jnp.sum((a[:, None] - b[None]) ** 2, -1))

    def apply(x: Any, y: Any, at: Any) -> Any:
        factor = jax.scipy.linalg.cho_factor(kernel(x, x) + 0.5 * jnp.eye(32), lower=True)
        return kernel(at, x) @ jax.scipy.linalg.cho_solve(factor, y)

    def oracle(x: Any, y: Any, at: Any) -> Any:
        def kernel(a: Any, b: Any) -> Any:
            return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))

        return kernel(at, x) @ np.linalg.solve(kernel(x, x) + 0.5 * np.eye(32), y)

    arguments = (draw.normal(32, 2), draw.normal(32), draw.normal(16, 2))
    return Case(apply, arguments, (P("x"), P("x"), P("x")), P("x"), oracle)
