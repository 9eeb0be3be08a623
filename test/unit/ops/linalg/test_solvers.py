"""Solves and products with a factored matrix, split on batch and right-hand sides, against one device and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.split import check_split

import shardpass

RNG = np.random.default_rng(23)
LOWER = np.tril(RNG.standard_normal((6, 5, 5)) * 0.3 + 2 * np.eye(5)).astype(np.float32)
RIGHT = RNG.standard_normal((6, 5, 7)).astype(np.float32)
DIAGONALS = [RNG.standard_normal((6, 5)).astype(np.float32) + 4 * (i == 1) for i in range(3)]
TAUS = RNG.uniform(0.5, 1.5, (6, 5)).astype(np.float32)

Call = tuple[Callable[..., Any], list[np.ndarray], int]  # the last: the dimension of the right-hand sides

CALLS: dict[str, Call] = {
    "triangular": (lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), [LOWER, RIGHT], 2),
    "triangular, on the right": (
        lambda a, b: lax.linalg.triangular_solve(a, b, lower=True, transpose_a=True),
        [LOWER, RIGHT.transpose(0, 2, 1).copy()],
        1,
    ),
    "triangular, complex": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True, transpose_a=True),
        [LOWER + 1j * LOWER, RIGHT + 1j * RIGHT[::-1]],
        2,
    ),
    "tridiagonal": (lambda *given: lax.linalg.tridiagonal_solve(*given), [*DIAGONALS, RIGHT], 2),
    "reflectors": (lambda a, t, c: lax.linalg.ormqr(a, t, c, transpose=True), [LOWER, TAUS, RIGHT], 2),
    "reflectors, on the right": (
        lambda a, t, c: lax.linalg.ormqr(a, t, c, left=False),
        [LOWER, TAUS, RIGHT.transpose(0, 2, 1).copy()],
        1,
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mesh", [(2, 3), (3, 2), (1, 4)])
def test_batch_and_right_hand_sides_stay_where_they_are(name: str, mesh: tuple[int, int]) -> None:
    """Seven right-hand sides divide by none of these meshes."""
    function, arguments, free = CALLS[name]
    split = P("x", None, "y") if free == 2 else P("x", "y")
    specs = [*[P("x")] * (len(arguments) - 1), split]
    seen = check_split(function, arguments, specs, mesh, [split])
    assert seen.kinds == []


@pytest.mark.parametrize("name", CALLS)
def test_what_is_solved_along_is_taken_whole(name: str) -> None:
    function, arguments, free = CALLS[name]
    split = P(None, "x", "y") if free == 1 else P(None, "y", "x")
    check_split(function, arguments, [*[P(None, "x")] * (len(arguments) - 1), split], (2, 2), [split])


def banded(lower: np.ndarray, middle: np.ndarray, upper: np.ndarray) -> np.ndarray:
    rows = zip(lower, middle, upper, strict=True)
    return np.stack([np.diag(m) + np.diag(low[1:], -1) + np.diag(up[:-1], 1) for low, m, up in rows])


@pytest.mark.parametrize(("name", "matrix"), [("triangular", LOWER), ("tridiagonal", banded(*DIAGONALS))])
def test_numpy_solves_the_same(name: str, matrix: np.ndarray) -> None:
    """One device, the other witness, calls the same LAPACK."""
    function, arguments, _ = CALLS[name]
    specs = [*[P("x")] * (len(arguments) - 1), P("x", None, "y")]
    seen = check_split(function, arguments, specs, (2, 3), [specs[-1]])
    (found,) = shardpass.compile(seen.module)(*arguments)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, RIGHT), rtol=1e-4, atol=1e-5)
