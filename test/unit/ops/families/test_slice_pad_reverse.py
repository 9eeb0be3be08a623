"""slice, pad, concatenate and reverse along split dimensions, against the whole program on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import draw
from support.split import check_split

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(3)
SPLITS = [((8,), P("x")), ((4, 2), P(("x", "y"))), ((4, 2), P("y", "x")), ((2, 3), P("y"))]

CUTS: dict[str, Callable[[Any], Any]] = {
    "from the second": lambda x: x[1:],
    "the second half": lambda x: x[x.shape[0] // 2 :],
    "every other": lambda x: x[::2],
    "every third of a part": lambda x: x[3:40:3],
    "padded": lambda x: jnp.pad(x, ((1, 2), (0, 0)), constant_values=5),
    "cropped and padded": lambda x: lax.pad(x, np.float32(7), ((-3, 9, 0), (0, 0, 0))),
    "padded inside": lambda x: lax.pad(x, np.float32(7), ((-3, 9, 2), (1, 0, 1))),
    "padded inside by three": lambda x: lax.pad(x, np.float32(7), ((0, 3, 3), (0, -1, 0))),
    "reversed": lambda x: x[::-1],
    "reversed both ways": lambda x: x[::-1, ::-1],
    "twice": lambda x: jnp.concatenate([x, x + 1], 0),
    "three of different sizes": lambda x: jnp.concatenate([x[:7], x, x[3:]], 0),
    "rolled": lambda x: jnp.roll(x, 5, 0),
}


@pytest.mark.parametrize("size", [48, 50])
@pytest.mark.parametrize("name", CUTS)
def test_equal_to_one_device(name: str, size: int) -> None:
    x = draw(RNG, (size, 6), np.float32)
    for mesh, spec in SPLITS[::2] if size == 48 else SPLITS[1:]:
        check_split(CUTS[name], [x], [spec], mesh, [spec])


@pytest.mark.parametrize("name", ["every third of a part", "padded inside", "three of different sizes", "reversed"])
def test_equal_on_the_reference_interpreter(name: str) -> None:
    check_split(CUTS[name], [draw(RNG, (43, 3), np.float32)], [P("x")], (4,), [P("x")], interpreter=True)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16, np.float16, np.complex64])
@pytest.mark.parametrize("name", ["from the second", "twice", "reversed"])
def test_element_types(name: str, dtype: Any) -> None:
    functions = {**CUTS, "twice": lambda x: jnp.concatenate([x, x[::2]], 0)}
    check_split(functions[name], [draw(RNG, (21, 4), dtype)], [P("x")], (4,), [P("x")])


WIDE = (64, 2048)  # rows of 8 KiB: bytes outweigh latency
ROW = 4 * 2048


@pytest.mark.parametrize(
    ("name", "kinds", "rows"),
    [
        ("from the second", ["collective_permute"], 1),
        ("the second half", ["collective_permute"] * 2, 8),  # two rounds of a new tile of four
        ("every other", [], 0),
        ("reversed", ["collective_permute"], 8),
        ("twice", ["collective_permute"] * 2, 16),
    ],
)
def test_bytes(name: str, kinds: list[str], rows: int) -> None:
    """Over 8 devices, tiles of 8 rows: what a device receives, by hand."""
    seen = check_split(CUTS[name], [draw(RNG, WIDE, np.float32)], [P("x")], (8,), [P("x")])
    assert seen.kinds == kinds
    assert sum(use.bytes_received for use in seen.collectives) == rows * ROW


@pytest.mark.parametrize("name", CUTS)
def test_no_array_of_wide_rows_is_gathered(name: str) -> None:
    """Only parts of fewer rows than devices are, which nothing splits."""
    seen = check_split(CUTS[name], [draw(RNG, (50, 2048), np.float32)], [P("x")], (8,), [P("x")])
    assert sum(use.bytes_received for use in seen.collectives if use.kind == "all_gather") < 8 * ROW


def test_a_cut_along_two_split_dimensions() -> None:
    x = draw(RNG, (19, 22), np.int32)
    seen = check_split(lambda x: x[2:-1, 3::2], [x], [P("x", "y")], (4, 2), [P("x", "y")], interpreter=True)
    assert not seen.diagnostics


def test_nothing_left_of_a_dimension() -> None:
    check_split(lambda x: x[5:5], [draw(RNG, (16, 3), np.float32)], [P("x")], (4,))
    check_split(
        lambda x: lax.pad(x[:0], np.float32(2), ((3, 6, 1), (0, 0, 0))), [np.ones((8, 2), np.float32)], [P("x")], (4,)
    )


def test_padding_of_an_uneven_dimension_is_never_seen() -> None:
    """Seven over four: the last device holds one element and one of padding, which exp makes finite and not zero."""
    x = draw(RNG, (7, 3), np.float32)
    check_split(lambda x: jnp.concatenate([jnp.exp(x), jnp.exp(x)[::-1]], 0).sum(), [x], [P("x")], (4,))
    check_split(lambda x: jnp.pad(jnp.exp(x), ((0, 5), (0, 0))).sum(0), [x], [P("x")], (4,))
