"""A grid of devices and the sharding that it makes: there and back, for every way to fill small grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shardpass.sharding import Mesh, Sharding, parse_sharding
from shardpass.sharding.from_devices import cut, from_digits, from_grid
from shardpass.sharding.notes import Kind


@pytest.mark.parametrize("counts", [(4,), (2, 2), (1, 4), (2, 1, 2)])
def test_every_order_of_four_devices(counts: tuple[int, ...]) -> None:
    for order in itertools.permutations(range(4)):
        sharding = from_grid(np.array(order), counts, ())
        dims, devices = sharding.tile_assignment()
        assert dims == counts
        assert devices.tolist() == list(order)
        tiles = np.array(order).reshape(counts)
        shape = tuple(3 * count for count in counts)
        offsets = sharding.tile_offsets(shape)
        for place in np.ndindex(counts):
            assert offsets[tiles[place]].tolist() == [3 * k for k in place]


@pytest.mark.parametrize("counts", [(2, 3), (3, 2), (2, 1, 3)])
def test_copies_of_six_devices(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        order = np.sort(rng.permutation(6).reshape(-1, counts[-1]), axis=1).reshape(-1)
        sharding = from_grid(order, counts, (Kind.REPLICATED,))
        dims, devices = sharding.tile_assignment()
        assert (dims, devices.tolist()) == (counts, order.tolist())
        assert sharding.tile_counts(len(counts) - 1) == counts[:-1]


def test_devices_that_count_through_digits_get_a_plain_mesh() -> None:
    # 0,4,1,5,2,6,3,7: the first dimension of 4 counts the devices in ones, the second in fours
    sharding = from_grid(np.array([0, 4, 1, 5, 2, 6, 3, 7]), (4, 2), ())
    assert sharding.mesh == Mesh((("axis_0", 2), ("axis_1", 4)))
    assert from_grid(np.array([0, 4, 1, 5, 2, 6, 7, 3]), (4, 2), ()).mesh.device_ids is not None  # type: ignore[union-attr]


def test_digits_are_cut_where_they_end_or_divide() -> None:
    assert cut([(1, 8)], (2, 4)) == [((4, 2),), ((1, 4),)]
    assert cut([(4, 2), (1, 4)], (8,)) == [((1, 8),)]
    assert cut([(1, 6)], (4, 2)) is None  # 4 does not divide 6
    assert cut([(3, 2), (1, 3)], (3, 2)) is None  # 2 and 3 do not nest


def test_subgroups() -> None:
    made = from_digits([((4, 2),)], {Kind.MANUAL: ((2, 2),), Kind.REPLICATED: ((1, 2),)})
    assert str(made) == "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}"
    assert made == parse_sharding(str(made))
    assert made.groups(made.manual).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_the_plain_form_of_a_sharding_means_the_same() -> None:
    mesh = Mesh((("x", 2), ("y", 3), ("z", 2)))
    for names in itertools.permutations(mesh.names, 2):
        sharding = Sharding.tiled(mesh, [[names[0]], [names[1]]])
        dims, devices = sharding.tile_assignment()
        assert math.prod(dims) == 12
        assert from_grid(devices, dims, (Kind.REPLICATED,)) == sharding
