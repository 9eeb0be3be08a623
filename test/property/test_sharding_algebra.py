"""Each law of the sharding algebra against the tiles that every device holds, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import daily

from shardpass.sharding import Sharding, ShardingError, common_mesh, parse_sharding
from shardpass.sharding.algebra import compose, from_tiles, refines, reshape, slices, transpose

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


def owned(index: Ints, dims: tuple[int, ...], shape: tuple[int, ...], device: int) -> set[int]:
    """The row-major numbers of the elements that a device holds, by XLA's ceil rule."""
    flat = np.arange(math.prod(shape)).reshape(shape)
    tile = [-(-n // c) for n, c in zip(shape, dims, strict=True)]
    at = [min(int(i) * t, n) for i, t, n in zip(index[device], tile, shape, strict=True)]
    return set(flat[tuple(slice(a, a + t) for a, t in zip(at, tile, strict=True))].reshape(-1).tolist())


@given(grids(), st.lists(st.integers(0, 7), min_size=3, max_size=3))
def test_offsets_and_slices(grid, sizes) -> None:  # type: ignore[no-untyped-def]
    dims = grid[0]
    shape = tuple(sizes[: len(dims)])
    sharding, index = parse_sharding(text_of(grid)), index_of(grid)
    tile = tuple(-(-n // c) for n, c in zip(shape, dims, strict=True))
    assert sharding.tile_shape(shape) == tile
    offsets = sharding.tile_offsets(shape, len(grid[1]))
    np.testing.assert_array_equal(offsets, np.minimum(index * np.array(tile), np.array(shape)))
    flat = np.arange(math.prod(shape)).reshape(shape)
    for device in range(len(grid[1])):
        assert set(flat[slices(sharding, shape, device)].reshape(-1).tolist()) == owned(index, dims, shape, device)
    for device in (-1, len(grid[1])) if sharding.num_devices is not None else ():
        with pytest.raises(ShardingError, match="SP"):
            slices(sharding, shape, device)


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


@given(grids(sizes=(8,), ranks=(2,)), grids(sizes=(8,), ranks=(2,)))
def test_refinement(fine, coarse) -> None:  # type: ignore[no-untyped-def]
    shape = tuple(math.lcm(a, b) for a, b in zip(fine[0], coarse[0], strict=True))
    inside = all(
        owned(index_of(fine), fine[0], shape, d) <= owned(index_of(coarse), coarse[0], shape, d)
        for d in range(len(fine[1]))
    )
    assert refines(parse_sharding(text_of(fine)), parse_sharding(text_of(coarse))) == inside


@given(grids(sizes=(8,)), grids(sizes=(8,)))
def test_composition_intersects_the_devices(one, two) -> None:  # type: ignore[no-untyped-def]
    n = len(one[1])
    rows, columns = math.prod(one[0]), math.prod(two[0])  # one splits rows, the other columns
    first = from_tiles(np.stack([np.ravel_multi_index(tuple(index_of(one).T), one[0]), np.zeros(n, int)], 1), (rows, 1))
    second = from_tiles(
        np.stack([np.zeros(n, int), np.ravel_multi_index(tuple(index_of(two).T), two[0])], 1), (1, columns)
    )
    holders: dict[tuple[int, int], set[int]] = {}
    for i in range(rows):
        for j in range(columns):
            left = {d for d in range(n) if first.tile_index()[d][0] == i} if rows > 1 else set(range(n))
            right = {d for d in range(n) if second.tile_index()[d][1] == j} if columns > 1 else set(range(n))
            holders[i, j] = left & right
    sizes = {len(devices) for devices in holders.values()}
    if 0 in sizes or len(sizes) > 1:
        with pytest.raises(ShardingError):
            compose(first, second)
        return
    found = compose(first, second)
    assume(not found.is_replicated)
    grid = found.tile_devices()
    assert {key: set(grid[key].tolist()) for key in holders} == holders


@given(grids(), st.data())
def test_transpose(grid, data) -> None:  # type: ignore[no-untyped-def]
    sharding = parse_sharding(text_of(grid))
    perm = data.draw(st.permutations(range(len(grid[0]))))
    found = transpose(sharding, perm)
    shape = tuple(2 * c + 1 for c in grid[0])
    moved = tuple(shape[p] for p in perm)
    np.testing.assert_array_equal(found.tile_offsets(moved), sharding.tile_offsets(shape)[:, perm])


SHAPES = [
    (24,),
    (2, 12),
    (12, 2),
    (4, 6),
    (6, 4),
    (2, 3, 4),
    (4, 3, 2),
    (2, 2, 6),
    (8, 3),
    (3, 8),
    (24, 1),
    (1, 24),
    (2, 1, 12),
]


@settings(max_examples=daily.scaled(300))
@given(grids(), st.data(), st.sampled_from(SHAPES))
def test_reshape_moves_no_element(grid, data, new_shape) -> None:  # type: ignore[no-untyped-def]
    shape = data.draw(st.sampled_from([s for s in SHAPES if len(s) == len(grid[0])]))
    sharding = parse_sharding(text_of(grid))
    found = reshape(sharding, shape, new_shape)
    before = [owned(index_of(grid), grid[0], shape, d) for d in range(len(grid[1]))]
    divides = all(n % c == 0 for n, c in zip(shape, grid[0], strict=True))
    if found is None:
        assert not divides or not _says_it(before, len(new_shape), new_shape), "a sharding of the result exists"
        return
    index = np.broadcast_to(found.tile_index() if found.dims else 0, (len(grid[1]), len(new_shape)))
    after = [owned(index, found.tile_counts(len(new_shape)), new_shape, d) for d in range(len(grid[1]))]
    assert before == after


def _says_it(before: list[set[int]], rank: int, shape: tuple[int, ...]) -> bool:
    """Whether equal tiles of ``shape`` hold just these elements on each device (all grids are tried)."""
    counts = [[c for c in range(1, n + 1) if n % c == 0] for n in shape]
    grids = np.stack([g.reshape(-1) for g in np.meshgrid(*counts, indexing="ij")], axis=1)
    for dims in grids.tolist():
        if math.prod(shape) // math.prod(dims) != len(before[0]):
            continue
        tiles = [owned(np.array([where]), tuple(dims), shape, 0) for where in np.ndindex(*dims)]
        if all(part in tiles for part in before):
            return True
    return False


def test_a_replicated_sharding_has_one_meaning() -> None:
    assert Sharding.replicated() == parse_sharding("{devices=[1,1,4]<=[4] last_tile_dim_replicate}")
