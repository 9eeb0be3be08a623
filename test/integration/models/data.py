"""Data: clusters, histograms, sorting, scans, tables."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program


@program(mesh=(8,), tolerance=1e-4)
def kmeans(pin: Pin) -> Case:
    """Five rounds of Lloyd; 250 points over all devices (uneven), centres whole."""
    draw = Draw(90)
    points = (draw.normal(250, 3) + 4 * draw.normal(6, 3)[draw.integers(6, 250)]).astype(np.float32)

    def apply(points: Any, centres: Any) -> Any:
        points = pin(points, "x", None)

        def body(_: Any, centres: Any) -> Any:
            near = jnp.argmin(jnp.sum((points[:, None] - centres[None]) ** 2, -1), -1)
            one = jax.nn.one_hot(near, 6)
            return (one.T @ points) / jnp.maximum(one.sum(0)[:, None], 1)

        return lax.fori_loop(0, 5, body, centres)

    def oracle(points: Any, centres: Any) -> Any:
        for _ in range(5):
            one = np.eye(6)[((points[:, None] - centres[None]) ** 2).sum(-1).argmin(-1)]
            centres = one.T @ points / np.maximum(one.sum(0)[:, None], 1)
        return centres

    return Case(apply, (points, points[:6]), (P(), P()), P(), oracle)


@program(mesh=(8,))
def histogram(pin: Pin) -> Case:
    """Counts by bins: searchsorted and scatter-add over 1000 values split over all devices."""

    def apply(x: Any, edges: Any) -> Any:
        return jnp.zeros(17, jnp.int32).at[jnp.searchsorted(edges, x)].add(1)

    def oracle(x: Any, edges: Any) -> Any:
        return np.bincount(np.searchsorted(edges, x), minlength=17).astype(np.int32)

    return Case(apply, (Draw(91).normal(1000), np.linspace(-2, 2, 16).astype(np.float32)), (P("x"), P()), P(), oracle)


@program(mesh=(4, 2))
def sorting(pin: Pin) -> Case:
    """Sorting, arg sorting and medians along a split dimension; the other dimension split too."""

    def apply(x: Any) -> Any:
        return jnp.sort(x, -1), jnp.argsort(x, -1), jnp.median(x, -1)

    def oracle(x: Any) -> Any:
        return np.sort(x, -1), np.argsort(x, -1).astype(np.int32), np.median(x, -1)

    return Case(apply, (Draw(92).normal(16, 64),), (P("y", "x"),), (P("y", "x"), P("y", "x"), P("y")), oracle)


@program(mesh=(8,))
def sort_one_dimension(pin: Pin) -> Case:
    """Sorting 999 pairs by key, the only dimension split (uneven)."""

    def apply(keys: Any, values: Any) -> Any:
        keys, values = lax.sort((pin(keys, "x"), pin(values, "x")), num_keys=1)
        return keys, values

    def oracle(keys: Any, values: Any) -> Any:
        order = np.argsort(keys, kind="stable")
        return keys[order], values[order]

    draw = Draw(93)
    return Case(apply, (draw.normal(999), draw.integers(1000, 999)), (P(), P()), (P(), P()), oracle)


@program(mesh=(4, 2))
def top_k(pin: Pin) -> Case:
    """The five greatest along a split dimension, and their places."""

    def oracle(x: Any) -> Any:
        order = np.argsort(-x, -1, kind="stable")[:, :5]
        return np.take_along_axis(x, order, -1), order.astype(np.int32)

    return Case(lambda x: tuple(lax.top_k(x, 5)), (Draw(94).normal(16, 64),), (P("x", "y"),), (P("x"), P("x")), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def cumulative(pin: Pin) -> Case:
    """Cumulative sum, product, maximum and logsumexp along a split dimension."""

    def apply(x: Any) -> Any:
        p = 1 + 0.01 * x
        return (
            jnp.cumsum(x, 1),
            jnp.cumprod(p, 1),
            lax.cummax(x, 1),
            lax.cumlogsumexp(x, 1),
            lax.cumsum(x, 1, reverse=True),
        )

    def oracle(x: Any) -> Any:
        back = np.cumsum(x[:, ::-1], 1)[:, ::-1]
        most, grown = np.maximum.accumulate(x, 1), np.logaddexp.accumulate(x, 1)
        return np.cumsum(x, 1), np.cumprod(1 + 0.01 * x, 1), most, grown, back

    return Case(apply, (Draw(95).normal(8, 48),), (P("y", "x"),), (P("y", "x"),) * 5, oracle)


@program(mesh=(2, 3), tolerance=1e-4)
def statistics(pin: Pin) -> Case:
    """Mean, variance, greatest, least, product, any, all and arg max of a table that divides neither way."""

    def apply(x: Any) -> Any:
        x = pin(x, "x", "y")
        whole = (x.mean(), x.var(), x.max(), x.min(), jnp.prod(1 + 0.01 * x))
        return *whole, (x > 2).any(0), (x > -9).all(), x.argmax(0), x.argmin(1)

    def oracle(x: Any) -> Any:
        whole = (x.mean(), x.var(), x.max(), x.min(), np.prod(1 + 0.01 * x))
        return *whole, (x > 2).any(0), (x > -9).all(), x.argmax(0).astype(np.int32), x.argmin(1).astype(np.int32)

    return Case(apply, (Draw(96).normal(25, 17),), (P(),), (P(),) * 9, oracle)


@program(mesh=(8,), tolerance=1e-4)
def table_update(pin: Pin) -> Case:
    """Rows of a split table set, added to and raised to a maximum at given places."""

    def apply(table: Any, at: Any, rows: Any) -> Any:
        return table.at[at].set(rows), table.at[at].add(rows), table.at[at].max(rows)

    def oracle(table: Any, at: Any, rows: Any) -> Any:
        one, two, three = table.copy(), table.copy(), table.copy()
        one[at] = rows
        np.add.at(two, at, rows)
        np.maximum.at(three, at, rows)
        return one, two, three

    draw = Draw(97)
    at = draw.rng.permutation(64)[:10].astype(np.int32)
    return Case(apply, (draw.normal(64, 4), at, draw.normal(10, 4)), (P("x"), P(), P()), (P("x"),) * 3, oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def rolling_features(pin: Pin) -> Case:
    """Features of a series: lags by dynamic_slice, strided slices, reversal, moving averages; time over x."""

    def apply(x: Any, start: Any) -> Any:
        lag = lax.dynamic_slice_in_dim(jnp.pad(x, ((8, 0), (0, 0))), start, 64, 0)
        smooth = lax.reduce_window(x, 0.0, lax.add, (4, 1), (1, 1), [(3, 0), (0, 0)]) / 4
        return lag, x[::2] - x[1::2], x[::-1], smooth

    def oracle(x: Any, start: Any) -> Any:
        lag = np.pad(x, ((8, 0), (0, 0)))[int(start) : int(start) + 64]
        padded = np.pad(x, ((3, 0), (0, 0)))
        smooth = sum(padded[i : i + 64] for i in range(4)) / 4
        return lag, x[::2] - x[1::2], x[::-1], smooth

    return Case(apply, (Draw(98).normal(64, 6), np.int32(5)), (P("x", "y"), P()), (P("x", "y"),) * 4, oracle)
