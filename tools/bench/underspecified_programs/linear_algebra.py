"""Linear algebra and statistics with one matrix annotated and everything else open."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program


@program(mesh=DATA)
def least_squares() -> Case:
    """Normal equations of a tall matrix split by rows: its Gram matrix is small."""
    draw = Draw(110)

    def solve(pin: Pin, a: Any, b: Any) -> Any:
        gram = pin("gram", a.T @ a + jnp.eye(a.shape[1]))
        return jnp.linalg.solve(gram, pin("gram", a.T @ b))

    arguments = (draw.normal(8192, 64), draw.normal(8192, 4))
    expert = Annotations((P("data", None), P("data", None)), P(), {"gram": P()})
    return Case(solve, arguments, Annotations((P("data", None), None)), expert)


@program(mesh=DATA)
def power_iteration() -> Case:
    """The greatest eigenvalue of a matrix split by columns, in 16 steps; the vector is open."""
    draw = Draw(111)

    def iterate(pin: Pin, a: Any, v: Any) -> Any:
        def body(_: Any, v: Any) -> Any:
            v = pin("vector", a @ v)
            return v / jnp.sqrt(jnp.sum(v * v))

        v = jax.lax.fori_loop(0, 16, body, v)
        return v @ (a @ v)

    a = draw.normal(1024, 1024, scale=1024**-0.5)
    arguments = (a + a.T, draw.normal(1024))
    expert = Annotations((P(None, "data"), P("data")), P(), {"vector": P("data")})
    return Case(iterate, arguments, Annotations((P(None, "data"), None)), expert)


@program(mesh=DATA_MODEL)
def conjugate_gradient() -> Case:
    """16 steps of conjugate gradients; the matrix is split in both dimensions, vectors are open."""
    draw = Draw(112)

    def solve(pin: Pin, a: Any, b: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            x, r, p, rr = carry
            ap = pin("vector", a @ p)
            alpha = rr / jnp.vdot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            new = jnp.vdot(r, r)
            return x, r, pin("vector", r + new / rr * p), new

        x = jnp.zeros_like(b)
        return jax.lax.fori_loop(0, 16, body, (x, b, b, jnp.vdot(b, b)))[0]

    a = draw.normal(1024, 1024, scale=1024**-0.5)
    arguments = (a @ a.T + 4 * np.eye(1024, dtype=np.float32), draw.normal(1024))
    both = ("data", "model")
    expert = Annotations((P("data", "model"), P(both)), P(both), {"vector": P(both)})
    return Case(solve, arguments, Annotations((P("data", "model"), None)), expert)


@program(mesh=DATA_MODEL)
def product_chain() -> Case:
    """a @ b @ c @ d where only a and d are annotated, in both dimensions; the middle is narrow."""
    draw = Draw(113)

    def chain(pin: Pin, a: Any, b: Any, c: Any, d: Any) -> Any:
        return pin("rows", pin("rows", a @ b) @ c) @ d

    arguments = (draw.weight(1024, 512), draw.weight(512, 64), draw.weight(64, 512), draw.weight(512, 1024))
    outer, inner = P("data", "model"), P("model", "data")
    expert = Annotations((outer, P(), P(), inner), outer, {"rows": P("data", None)})
    return Case(chain, arguments, Annotations((outer, None, None, inner)), expert)


@program(mesh=DATA)
def kmeans() -> Case:
    """Ten rounds of Lloyd's algorithm with only the points annotated."""
    draw = Draw(114)

    def cluster(pin: Pin, points: Any, centres: Any) -> Any:
        def body(_: Any, centres: Any) -> Any:
            distances = pin("distances", jnp.sum(centres**2, -1) - 2 * points @ centres.T)
            chosen = jax.nn.one_hot(jnp.argmin(distances, -1), centres.shape[0])
            sums, counts = pin("centres", chosen.T @ points), jnp.sum(chosen, 0)
            return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centres)

        return jax.lax.fori_loop(0, 10, body, centres)

    points = draw.normal(8192, 16)
    pins = {"distances": P("data", None), "centres": P()}
    expert = Annotations((P("data", None), P()), P(), pins)
    return Case(cluster, (points, points[:32].copy()), Annotations((P("data", None), None)), expert)


@program(mesh=DATA)
def kmeans_by_centres() -> Case:
    """Distances and sums of one round where the centres, not the points, are annotated and there are more of them."""
    draw = Draw(115)

    def assign(pin: Pin, points: Any, centres: Any) -> Any:
        distances = pin("distances", jnp.sum(centres**2, -1) - 2 * points @ centres.T)
        return jnp.argmin(distances, -1), jnp.min(distances, -1)

    expert = Annotations((P(), P("data", None)), P(), {"distances": P(None, "data")})
    return Case(assign, (draw.normal(512, 16), draw.normal(4096, 16)), Annotations((None, P("data", None))), expert)
