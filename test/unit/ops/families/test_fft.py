"""Transforms over all dimensions: written as two, split, and exchanged rather than gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support.differential import assert_same
from support.split import check_split

import shardpass
from shardpass.ops.families.fft import LEAST

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(23)
FORMS = ("fft", "ifft", "rfft", "irfft")
SHAPES = {2: (72, 64), 3: (24, 12, 16)}


def drawn(form: str, shape: tuple[int, ...]) -> Any:
    real = RNG.standard_normal(shape)
    if form == "rfft":
        return real.astype(np.float32)
    return (real + 1j * RNG.standard_normal(shape)).astype(np.complex64)


def transform(library: Any, form: str) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = getattr(library.fft, f"{form}n")
    return function


@pytest.mark.parametrize("mesh_and_spec", [((8,), P("x")), ((4, 2), P("x", "y")), ((5,), P(None, "x"))])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_every_split_gives_what_one_device_gives(form: str, rank: int, mesh_and_spec: Any) -> None:
    mesh, spec = mesh_and_spec
    check_split(transform(jnp, form), [drawn(form, SHAPES[rank])], [spec], mesh, [spec])


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_the_transform(form: str, rank: int) -> None:
    """NumPy's, in double precision."""
    x = drawn(form, SHAPES[rank])
    lowered = jax.jit(transform(jnp, form)).lower(jax.ShapeDtypeStruct(x.shape, x.dtype)).as_text()
    module = shardpass.run_pipeline(lowered, "partition")
    assert str(module).count("stablehlo.fft") == 2
    (found,) = shardpass.compile(module)(x)
    wanted = transform(np, form)(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    assert_same(found, wanted.astype(np.asarray(found).dtype), form)


@pytest.mark.parametrize(("form", "columns"), [("fft", 512), ("rfft", 257), ("irfft", 257)])
def test_rows_are_exchanged_and_not_gathered(form: str, columns: int) -> None:
    """A tile of complex numbers is exchanged twice, of which 7/8 cross; gathering would receive 7 tiles."""
    shape = (512, 512) if form != "irfft" else (512, 257)
    seen = check_split(transform(jnp, form), [drawn(form, shape)], [P("x")], (8,), [P("x")], pipeline="partition")
    assert seen.kinds == ["all_to_all", "all_to_all"]
    padded = -(-columns // 8) * 8  # columns are exchanged by eighths
    assert sum(use.bytes_received for use in seen.collectives) <= 2 * (7 * 512 * padded * 8 // 64)


@pytest.mark.parametrize(
    ("shape", "axes", "ops"),
    [
        ((64, 64), (0, 1), 2),
        ((1, 64, 64), (1, 2), 2),
        ((2, 64, 64), (1, 2), 1),
        ((63, 64), (0, 1), 1),
        ((8192,), (0,), 1),
    ],
)
def test_a_batch_and_small_arrays_keep_their_op(shape: tuple[int, ...], axes: tuple[int, ...], ops: int) -> None:
    assert (np.prod(shape) >= LEAST) == (shape != (63, 64))
    x = jax.ShapeDtypeStruct(shape, np.complex64)
    lowered = jax.jit(lambda x: jnp.fft.fftn(x, axes=axes)).lower(x).as_text()
    assert str(shardpass.run_pipeline(lowered, "import")).count("stablehlo.fft") == ops
