"""bitcast_convert with and without a change of width, against the whole program on one device."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import draw
from support.split import check_split

RNG = np.random.default_rng(23)


@pytest.mark.parametrize(
    ("shape", "given", "made"),
    [
        ((10, 6), np.float32, jnp.uint32),
        ((10, 6), np.float32, jnp.uint8),  # a dimension of four appears
        ((10, 6, 2), np.uint16, jnp.int32),  # a dimension of two vanishes
    ],
)
@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(None, "x")])
def test_splits_pass_through(shape: tuple[int, ...], given: Any, made: Any, spec: P) -> None:
    seen = check_split(
        lambda x: lax.bitcast_convert_type(x, made), [draw(RNG, shape, given)], [spec], (2, 3), [spec], interpreter=True
    )
    assert seen.kinds == []


def test_the_dimension_that_vanishes_is_gathered() -> None:
    x = draw(RNG, (10, 6, 4), np.uint8)
    check_split(lambda x: lax.bitcast_convert_type(x, jnp.float32), [x], [P(None, None, "x")], (4,))


def test_complex_parts_and_reduced_precision() -> None:
    def parts(x: Any) -> Any:
        z = jnp.conj(lax.complex(x, 2 * x))
        return lax.reduce_precision(z.real, 5, 3) + z.imag

    x = draw(RNG, (10, 6), np.float32) / 7
    assert check_split(parts, [x], [P("x", "y")], (4, 2), [P("x", "y")]).kinds == []
