"""Laws of shardings against the tiles that a walk over the grid of devices gives."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hypothesis import assume, given
from hypothesis import strategies as st

from shardpass.sharding import Sharding, common_mesh, parse_sharding
from shardpass.sharding.from_devices import from_tiles

Ints = npt.NDArray[np.int64]
Draw = Callable[[st.SearchStrategy[object]], object]
COUNTS = [(1,), (2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2), (3, 2), (2, 3), (6, 2), (3, 4), (2, 3, 2), (12,)]


@st.composite
def grids(draw, sizes=(2, 4, 6, 8, 12), ranks=(1, 2, 3)):  # type: ignore[no-untyped-def]
    """A device grid: (dims, devices in row-major order, copies last or not)."""
    n = draw(st.sampled_from(sizes))
    rank = draw(st.sampled_from(ranks))
    dims, left = [], n
    for _ in range(rank):
        dims.append(draw(st.sampled_from([k for k in range(1, left + 1) if left % k == 0])))
        left //= dims[-1]
    shapes = [s for s in COUNTS if math.prod(s) == n]
    shape = draw(st.sampled_from(shapes))
    if draw(st.integers(0, 3)):
        order = np.arange(n).reshape(shape).transpose(draw(st.permutations(range(len(shape))))).reshape(-1)
    else:
        order = np.array(draw(st.permutations(range(n))))
    return tuple(dims), order.astype(np.int64), left


def text_of(grid: tuple[tuple[int, ...], Ints, int]) -> str:
    dims, order, copies = grid
    listed = ",".join(map(str, order.tolist()))
    return f"{{devices=[{','.join(map(str, (*dims, copies)))}]{listed} last_tile_dim_replicate}}"


def index_of(grid: tuple[tuple[int, ...], Ints, int]) -> Ints:
    """The tile of each device, by walking the grid."""
    dims, order, copies = grid
    out = np.empty((len(order), len(dims)), dtype=np.int64)
    for place, device in enumerate(order.tolist()):
        out[device] = np.unravel_index(place // copies, dims)
    return out


@given(grids(), st.lists(st.integers(0, 7), min_size=3, max_size=3))
def test_offsets(grid, sizes) -> None:  # type: ignore[no-untyped-def]
    dims = grid[0]
    shape = tuple(sizes[: len(dims)])
    sharding, index = parse_sharding(text_of(grid)), index_of(grid)
    tile = tuple(-(-n // c) for n, c in zip(shape, dims, strict=True))
    assert sharding.tile_shape(shape) == tile
    offsets = sharding.tile_offsets(shape, len(grid[1]))
    np.testing.assert_array_equal(offsets, np.minimum(index * np.array(tile), np.array(shape)))


@given(grids(sizes=(4, 8), ranks=(2,)), grids(sizes=(4, 8), ranks=(2,)))
def test_equal_exactly_if_every_device_holds_the_same_tile(one, two) -> None:  # type: ignore[no-untyped-def]
    a, b = parse_sharding(text_of(one)), parse_sharding(text_of(two))
    same = len(one[1]) == len(two[1]) and one[0] == two[0] and np.array_equal(index_of(one), index_of(two))
    both_whole = math.prod(one[0]) == math.prod(two[0]) == 1
    assert (a == b) == (same or both_whole)
    if a == b:
        assert hash(a) == hash(b)


@given(grids())
def test_the_canonical_text_means_the_same_and_is_a_fixed_point(grid) -> None:  # type: ignore[no-untyped-def]
    sharding = parse_sharding(text_of(grid))
    again = parse_sharding(str(sharding))
    assert again == sharding
    assert str(again) == str(sharding)


@given(grids())
def test_tile_devices_is_the_inverse_of_the_tile_index(grid) -> None:  # type: ignore[no-untyped-def]
    dims, order, copies = grid
    sharding = parse_sharding(text_of(grid))
    assume(not sharding.is_replicated)
    found = sharding.tile_devices()
    np.testing.assert_array_equal(found, np.sort(order.reshape(*dims, copies), axis=-1))


@given(grids())
def test_from_tiles_is_the_inverse_of_tile_index(grid) -> None:  # type: ignore[no-untyped-def]
    assert from_tiles(index_of(grid), grid[0]) == parse_sharding(text_of(grid))


@given(st.lists(grids(sizes=(8, 12)), min_size=1, max_size=3))
def test_common_mesh_says_each_with_whole_axes(several) -> None:  # type: ignore[no-untyped-def]
    shardings = [parse_sharding(text_of(grid)) for grid in several]
    mesh = common_mesh(shardings)
    if mesh is None:
        return
    cuts = set()
    for sharding in shardings:
        said = sharding.on(mesh)
        assert said == sharding
        assert said is not None
        if sharding.mesh is not None:
            axes = [axis for dim in said.dims for axis in dim]
            assert all(axis.size is None for axis in axes)
            cuts |= {mesh.strides[a.name] for a in axes} | {mesh.strides[a.name] * mesh.sizes[a.name] for a in axes}
    inner = set(mesh.strides.values()) - {1}
    assert inner <= cuts, "an axis boundary that no sharding needs"


def test_a_replicated_sharding_has_one_meaning() -> None:
    assert Sharding.replicated() == parse_sharding("{devices=[1,1,4]<=[4] last_tile_dim_replicate}")
