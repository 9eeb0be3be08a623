"""Concatenates of slices are one splice: as numbers, and as what crosses devices, which is worked out by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support.split import check_split

X = np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
Y = -np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
ROW = 6 * 4  # bytes


def received(program, *arguments, devices=4) -> int:
    seen = check_split(program, arguments, (P("x"),) * len(arguments), (devices,), (P("x"),))
    return sum(use.bytes_received for use in seen.collectives)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 15])
def test_a_roll_moves_what_crosses_a_border(rows: int) -> None:
    """Tiles of 4 rows: each device receives as many rows as the roll goes past a border, to the nearer side."""
    least = min(rows, 16 - rows)
    assert received(lambda x: jnp.roll(x, rows, axis=0), X) == least * ROW


def test_a_roll_of_uneven_tiles() -> None:
    """10 rows in tiles of 3."""
    check_split(lambda x: jnp.roll(x, 2, axis=0), (X[:10],), (P("x"),), (4,), (P("x"),))
    check_split(lambda x: jnp.roll(x, -3, axis=0), (X[:10],), (P("x"),), (4,), (P("x"),))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: jnp.concatenate([x[3:], y[:3]]),
        lambda x, y: jnp.concatenate([y[12:], x[2:14]]),
        lambda x, y: jnp.concatenate([x[:8], y[:4], x[8:12]]),
        lambda x, y: jnp.concatenate([x[:5], x[5:11], y]),  # two that are one run
        lambda x, y: jnp.concatenate([x[:4], y[:4]]),  # a quarter of each: cut first
        lambda x, y: jnp.concatenate([x[::2], y[1::2]]),  # strides
        lambda x, y: jnp.concatenate([x[:12, :3], y[:, 3:]]),  # cut along the other dimension too
        lambda x, y: jnp.concatenate([x[2:], y[2:]], axis=1),
        lambda x, y: jnp.concatenate([x[0:0], y[2:]]),  # a part of no rows
        lambda x, y: jnp.concatenate([x[1:], x[:1]]) + jnp.concatenate([y[:1], y[:15]]),
    ],
)
@pytest.mark.parametrize("spec", [P("x"), P(None, "x")], ids=["rows", "columns"])
def test_parts_of_two_arrays(program, spec: P) -> None:
    check_split(program, (X, Y), (spec, spec), (2,))


def test_a_slice_that_others_use_too_stays() -> None:
    def program(x, y):
        part = x[2:]
        return jnp.concatenate([part, y[:2]]), part * 2

    check_split(program, (X, Y), (P("x"), P("x")), (4,))


def test_what_is_a_small_part_of_an_array_is_cut_first() -> None:
    """One row of 64 of y, after x: bringing a splice of y to tiles would move much of y; the row alone moves."""
    big = np.arange(64 * 6, dtype=np.float32).reshape(64, 6)
    moved = received(lambda x, y: jnp.concatenate([x[:15], y[:1]]), X, big)
    assert moved <= 4 * ROW
