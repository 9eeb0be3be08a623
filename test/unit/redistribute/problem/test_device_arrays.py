"""Index arithmetic on arrays of devices, against loops over the devices."""

import itertools
import random

import numpy as np
import pytest

from shardpass.redistribute.problem.device_arrays import (
    count_before,
    group_of,
    grouped,
    least_permutation,
    moving_pairs,
    names_each_once,
)
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.sharding import Mesh

MESHES = [Mesh((("x", 12), ("y", 2))), Mesh((("x", 2), ("y", 4)), (3, 1, 0, 2, 7, 6, 5, 4))]


def test_a_permutation_moves_only_tiles_on_the_wrong_devices():
    rng = random.Random(0)
    for _ in range(50):
        held = np.array([rng.randrange(4) for _ in range(12)])
        wanted = np.array(rng.sample(held.tolist(), 12))
        source_of = least_permutation(held, wanted)
        assert sorted(source_of.tolist()) == list(range(12))
        assert (held[source_of] == wanted).all()
        assert [d for d in range(12) if source_of[d] != d] == [d for d in range(12) if held[d] != wanted[d]]


def test_pairs_of_rounds_are_those_that_move():
    source_of = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    expected = [[s, d] for row in source_of.tolist() for d, s in enumerate(row) if s != d]
    assert moving_pairs(source_of).tolist() == expected


def test_devices_are_counted_by_key():
    key = [3, 1, 3, 3, 1]
    assert count_before(np.array(key)).tolist() == [key[:d].count(key[d]) for d in range(5)]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([[0, 2], [3, 1]], True),
        ([[0, 0], [3, 1]], False),
        ([[0, 1]], False),
        ([[0, 4], [3, 1]], False),
        ([[-1, 0], [1, 2]], False),
    ],
)
def test_groups_must_name_every_device_once(groups, expected):
    assert names_each_once(np.array(groups), 4) is expected


def test_groups_have_one_key_and_stand_in_order():
    key, position = np.array([1, 0, 1, 0]), np.array([1, 0, 0, 1])
    groups = grouped(key, position, 2, np.zeros(4, np.int64))
    assert groups.tolist() == [[2, 0], [1, 3]]
    assert group_of(groups).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_groups_along_sub_axes_are_rows_of_the_mesh(mesh):
    sub_axes = sub_axes_of(mesh)
    grid = np.asarray(mesh.devices).reshape(sub_axes.sizes)
    numbers = range(len(sub_axes.sizes))
    for chosen in itertools.chain.from_iterable(itertools.permutations(numbers, n) for n in range(1, len(numbers) + 1)):
        others = [m for m in numbers if m not in chosen]
        rows = grid.transpose(*others, *chosen).reshape(-1, sub_axes.count(chosen)).tolist()
        assert sorted(sub_axes.groups(chosen).tolist()) == sorted(rows)
        assert all(sub_axes.index(chosen)[device] == place for row in rows for place, device in enumerate(row))


def test_sub_axes_are_prime_and_named_as_parts():
    sub_axes = sub_axes_of(MESHES[0])
    assert [(part.axis, part.pre, part.size) for part in sub_axes.parts] == [
        ("x", 1, 3),
        ("x", 3, 2),
        ("x", 6, 2),
        ("y", 1, 2),
    ]
    assert sub_axes.names([1, 2]) == ("x:(3)4",)
    assert sub_axes.names([0, 1, 2, 3]) == ("x", "y")
    assert sub_axes.along(sub_axes.groups([0, 3])) == ("x:(1)3", "y")


def test_arrays_of_all_devices_are_made_once_for_a_mesh():
    first, second = (sub_axes_of(Mesh((("x", 4), ("y", 3)))) for _ in range(2))
    assert first is second
    assert first.groups([0]) is first.groups((0,))
    assert not first.groups([0]).flags.writeable
