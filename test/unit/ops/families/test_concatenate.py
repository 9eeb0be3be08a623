"""Rolls, and other parts of arrays side by side, along split dimensions: against one device, and moving no more than
what crosses a border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support import daily
from support.differential import draw
from support.split import check_split

from shardpass.ops.families.concatenate import Joint, Piece
from shardpass.ops.halo.transfers import tile_of

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(11)


def rolled(shift: int) -> Callable[[Any], Any]:
    return lambda x: jnp.roll(x, shift, 0)


@pytest.mark.parametrize("shift", [1, -1, 3, -7, 13, 25])
@pytest.mark.parametrize(
    ("size", "mesh", "spec"), [(48, (8,), P("x")), (50, (4, 2), P(("x", "y"))), (17, (2, 3), P("y"))]
)
def test_rolls(shift: int, size: int, mesh: tuple[int, ...], spec: P) -> None:
    check_split(rolled(shift), [draw(RNG, (size, 4), np.float32)], [spec], mesh, [spec])


PARTS: dict[str, Callable[..., Any]] = {
    "padded by itself": lambda x, y: jnp.pad(x, ((2, 3), (0, 0)), mode="wrap"),
    "padded by itself in both": lambda x, y: jnp.pad(x, 1, mode="wrap"),
    "a stencil on a torus": lambda x, y: (p := jnp.pad(x, 1, mode="wrap"))[:-2, 1:-1] + p[2:, 2:] + p[1:-1, :-2],
    "rolled in both": lambda x, y: jnp.roll(x, (1, -2), (0, 1)),
    "rolled twice": lambda x, y: jnp.roll(jnp.roll(x, 5, 0), -3, 0),
    "ends exchanged": lambda x, y: jnp.concatenate([x[4:], y[:4]]) * jnp.concatenate([y[4:], x[:4]]),
    "three turned round": lambda x, y: jnp.concatenate([x[12:], x[5:12], x[:5]]),
    "halves of two": lambda x, y: jnp.concatenate([x[9:], y[:9], x[:9], y[9:]]),
    "a small part": lambda x, y: jnp.concatenate([x[:2], y]),
    "a part that others use": lambda x, y: jnp.concatenate([x[3:], (t := x[:3])]) + t.sum(),
    "in a loop": lambda x, y: lax.fori_loop(0, 3, lambda _, u: jnp.roll(u, 1, 0) - jnp.roll(u, -2, 1), x),
    "along the other dimension": lambda x, y: jnp.roll(x, 1, 1),
}


@pytest.mark.parametrize("size", [16, 19])
@pytest.mark.parametrize("name", PARTS)
def test_parts_side_by_side(name: str, size: int) -> None:
    arguments = [draw(RNG, (size, 10), np.float32) for _ in range(2)]
    mesh, spec = ((4, 2), P("x", "y")) if size == 16 else ((2, 4), P("y", "x"))
    check_split(PARTS[name], arguments, [spec, spec], mesh)


@pytest.mark.parametrize("name", ["a stencil on a torus", "ends exchanged"])
def test_on_the_reference_interpreter(name: str) -> None:
    arguments = [draw(RNG, (13, 6), np.float32) for _ in range(2)]
    check_split(PARTS[name], arguments, [P("x"), P("x")], (4,), interpreter=True)


@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.complex64])
def test_element_types(dtype: Any) -> None:
    check_split(rolled(4), [draw(RNG, (21, 3), dtype)], [P("x")], (4,), [P("x")])


@pytest.mark.parametrize(
    ("size", "shift", "permutes", "rows"),
    [
        (64, 1, 1, 1),
        (64, -3, 1, 3),
        (64, 8, 1, 8),  # a whole tile further
        (64, 10, 2, 8),
        (61, 1, 1, 1),  # the last device holds five rows of eight
        (61, -1, 1, 1),
    ],
)
def test_bytes(size: int, shift: int, permutes: int, rows: int) -> None:
    """Over 8 devices, rows of 8 KiB: what a device receives, by hand."""
    seen = check_split(rolled(shift), [draw(RNG, (size, 2048), np.float32)], [P("x")], (8,), [P("x")])
    assert seen.kinds == ["collective_permute"] * permutes
    assert sum(use.bytes_received for use in seen.collectives) == rows * 4 * 2048


def test_a_stencil_on_a_torus_moves_a_row_a_side() -> None:
    def laplace(x: Any) -> Any:
        p = jnp.pad(x, ((1, 1), (0, 0)), mode="wrap")
        return p[:-2] + p[2:] - 2 * p[1:-1]

    seen = check_split(laplace, [draw(RNG, (64, 2048), np.float32)], [P("x")], (8,), [P("x")])
    assert [use.bytes_received for use in seen.collectives] == [4 * 2048] * 2


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_the_exchange_brings_every_piece(seed: int) -> None:
    """Random pieces of random operands, carried out with NumPy and compared with a concatenation."""
    rng = np.random.default_rng(seed)
    count, sizes = int(rng.integers(2, 6)), [int(n) for n in rng.integers(1, 20, rng.integers(1, 4))]
    pieces = []
    for _ in range(int(rng.integers(1, 6))):
        operand = int(rng.integers(len(sizes)))
        start, limit = sorted(int(n) for n in rng.integers(0, sizes[operand] + 1, 2))
        pieces.append(Piece(operand, start, limit))
    arrays = [np.arange(n) + 100 * i for i, n in enumerate(sizes)]
    expected = np.concatenate([arrays[p.operand][p.start : p.limit] for p in pieces])
    joint = Joint(0, tuple(pieces), tuple(sizes))
    held = []
    for p in range(count):
        row = []
        for array in arrays:
            tile = tile_of(len(array), count)
            own = array[p * tile : (p + 1) * tile]
            row.append(np.pad(own, (0, tile - len(own)), constant_values=-1))
        held.append(np.concatenate(row))
    tile = tile_of(len(expected), count)
    found = np.full((count, tile), -1)
    plan = joint.exchange(count)
    for step in (*plan.kept, *plan.rounds):
        for p, q in enumerate(step.source):
            if q >= 0:
                found[p, step.put[p] : step.put[p] + step.extent[p]] = held[q][step.take[q] :][: step.extent[p]]
    np.testing.assert_array_equal(found.reshape(-1)[: len(expected)], expected)
