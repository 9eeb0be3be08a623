"""Linear algebra split over batch dimensions, against the whole program on one device: nothing is gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text
from support.split import check_split

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(19)
ANY = RNG.standard_normal((12, 5, 5)).astype(np.float32)
POSITIVE = ANY @ ANY.transpose(0, 2, 1) + 5 * np.eye(5, dtype=np.float32)
RIGHT = RNG.standard_normal((12, 5, 4)).astype(np.float32)
LOWER = np.tril(POSITIVE)

CALLS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "cholesky": (jnp.linalg.cholesky, [POSITIVE]),
    "gradient of cholesky": (lambda a: jax.vjp(jnp.linalg.cholesky, a)[1](a)[0], [POSITIVE]),
    "qr": (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), [ANY]),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False), [ANY]),
    "eigh": (lambda a: jnp.linalg.eigh(a)[0], [POSITIVE]),
    "lu": (lambda a: sl.lu_factor(a)[0], [POSITIVE]),
    "solve": (jnp.linalg.solve, [POSITIVE, RIGHT]),
    "triangular": (lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), [LOWER, RIGHT]),
    "inverse": (jnp.linalg.inv, [POSITIVE]),
    "determinant": (jnp.linalg.det, [POSITIVE]),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), [RIGHT]),
    "two-dimensional fft": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x)), [RIGHT[:, :4]]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("batch", [12, 9])
def test_batches(name: str, batch: int) -> None:
    function, arguments = CALLS[name]
    given = [a[:batch] for a in arguments]
    mesh, spec = ((2, 3), P(("y", "x"))) if batch == 12 else ((4,), P("x"))
    seen = check_split(function, given, [spec] * len(given), mesh, [spec])
    assert seen.kinds == []
    assert "SP301" not in [d.code for d in seen.diagnostics]


@pytest.mark.parametrize("spec", [P(None, "x"), P("x", "y"), P(None, "y", "x")])
@pytest.mark.parametrize("name", ["cholesky", "fft", "two-dimensional fft"])
def test_split_matrices(name: str, spec: P) -> None:
    """The split moves to the batch, or the matrix is gathered; XLA takes FFTs of row-major arrays alone."""
    function, arguments = CALLS[name]
    check_split(function, arguments, [spec] * len(arguments), (2, 2))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("spec", [P(None, "x", "y"), P("y", None, "x")])
def test_fft_along_any_dimension(axis: int, spec: P) -> None:
    check_split(lambda x: jnp.abs(jnp.fft.fft(x, axis=axis)), [RIGHT], [spec], (2, 2), [spec])


BESIDE: dict[str, Callable[..., Any]] = {
    "transposed before": lambda x: jnp.abs(jnp.fft.fft(x.transpose(2, 0, 1), axis=1)),
    "transposed after": lambda x: jnp.abs(jnp.fft.fft(x)).transpose(2, 1, 0),
    "two, along different dimensions": lambda x: jnp.fft.ifft(jnp.fft.fft(x, axis=0).swapaxes(0, 1), axis=2).real,
    "a product": lambda x: jnp.einsum("abc,abd->cda", jnp.fft.rfft2(x, axes=(0, 1)).real, jnp.fft.rfft(x).imag[:, :3]),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("spec", [P("y", None, "x"), P(None, ("x", "y"))])
def test_layouts_beside_an_fft(name: str, spec: P) -> None:
    """XLA's FFT takes row-major arrays alone: what we put around it lets XLA choose no other layout."""
    check_split(BESIDE[name], [RIGHT], [spec], (2, 2), [P("x", "y")])


def test_the_split_of_a_transformed_dimension_moves() -> None:
    x = RNG.standard_normal((16, 16, 64)).astype(np.float32)
    seen = check_split(lambda x: jnp.abs(jnp.fft.fft(x, axis=1)), [x], [P(None, "x")], (8,), [P(None, "x")])
    assert seen.kinds == ["all_to_all", "all_to_all"]


SOLVE = """
func.func @main(%a: tensor<6x5x5xf32>, %b: tensor<6x{shape}xf32> {{mhlo.sharding = "{split}"}})
    -> tensor<6x{shape}xf32> {{
  %0 = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {left}, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}>
      : (tensor<6x5x5xf32>, tensor<6x{shape}xf32>) -> tensor<6x{shape}xf32>
  return %0 : tensor<6x{shape}xf32>
}}
"""


@pytest.mark.parametrize(
    ("left", "shape", "split"),
    [("true", "5x7", "{devices=[1,1,4]<=[4]}"), ("false", "7x5", "{devices=[1,4,1]<=[4]}")],
)
def test_right_hand_sides_are_solved_where_they_are(left: str, shape: str, split: str) -> None:
    right = RNG.standard_normal((6, *map(int, shape.split("x")))).astype(np.float32)
    seen = check_text(SOLVE.format(left=left, shape=shape, split=split), [LOWER[:6], right])
    assert "all_to_all" not in seen.kinds
    tile = 6 * 5 * 2 * 4
    assert sum(use.bytes_received for use in seen.collectives) <= 3 * tile  # the result's gather


NORM = """
func.func @main(%x: tensor<6x4x8xf32> {{mhlo.sharding = "{split}"}}, %s: tensor<8xf32>, %o: tensor<8xf32>,
    %m: tensor<8xf32>, %v: tensor<8xf32>) -> (tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<8xf32>, tensor<8xf32>) {{
  %p = stablehlo.multiply %v, %v : tensor<8xf32>
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %p) <{{epsilon = 1.0 : f32, feature_index = 2 : i64}}>
      : (tensor<6x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<6x4x8xf32>
  %1:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{{epsilon = 1.0 : f32, feature_index = 2 : i64}}>
      : (tensor<6x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<6x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0, %1#0, %1#1, %1#2 : tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<8xf32>, tensor<8xf32>
}}
"""


@pytest.mark.parametrize("split", ["{devices=[1,1,4]<=[4]}", "{devices=[4,1,1]<=[4]}", "{devices=[1,2,3]<=[6]}"])
def test_batch_norms(split: str) -> None:
    check_text(NORM.format(split=split))
