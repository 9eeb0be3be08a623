"""Solves and products with a factored matrix, split on batch and right-hand sides, against one device and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text
from support.split import check_split

import shardpass
from shardpass.diagnostics import collect

pytestmark = pytest.mark.turns(2)

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


TYPED_CALL = """
module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%a: tensor<5x5xf32>, %b: tensor<5x4xf32> {{mhlo.sharding = "{{devices=[1,2]<=[2]}}"}})
      -> (tensor<5x4xf32> {{mhlo.sharding = "{{devices=[1,2]<=[2]}}"}}) {{
    %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {{{config}, api_version = 4 : i32, operand_layouts = [
        dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], result_layouts = [
        dense<[0, 1]> : tensor<2xindex>]}} : (tensor<5x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }}
}}
"""
SAID = "{diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"


def test_attributes_in_stablehlos_own_place() -> None:
    """JAX writes them beside the op's others, as the tests above have them."""
    seen = check_text(TYPED_CALL.format(config=f"backend_config = {SAID}"), [LOWER[0], RIGHT[0, :, :4]])
    assert seen.kinds == []


def test_what_is_no_list_of_attributes_says_nothing() -> None:
    """The other place does; columns of the right-hand sides stay."""
    text = TYPED_CALL.format(config=f'mhlo.backend_config = "of another form", backend_config = {SAID}')
    assert "all_gather" not in str(shardpass.run_pipeline(text, "partition"))


def test_a_call_that_does_not_say_its_side_is_computed_whole() -> None:
    text = TYPED_CALL.format(config="backend_config = {}")
    with collect() as found:
        assert "all_gather" in str(shardpass.run_pipeline(text, "partition"))
    assert [d.code for d in found] == ["SP301"]
