"""Collectives by their replica groups: by hand on machines small enough, and beside axes that are known."""

import itertools
import math

import numpy as np
import pytest
from support.machines import switched

from shardpass.cost.collective import KINDS, PERMUTE, Axis, Collective, bytes_received, whole_of
from shardpass.cost.groups import axes_of, seconds, tier_of
from shardpass.cost.machine import find_machine

HOSTS = switched("hosts", 10.0, 10.0, math.inf, blocks=((4, 1.0, 100.0),))


@pytest.mark.parametrize(
    ("kind", "groups", "received", "want"),
    [
        # of 800 bytes each device brings a fourth of the other host's half over its card, then 600 inside of the host
        ("all_gather", [[0, 1, 2, 3, 4, 5, 6, 7]], 700, 10 + 100 / 10 + 1 + 600 / 100),
        ("all_to_all", [[0, 1], [2, 3], [4, 5], [6, 7]], 100, 1 + 100 / 100),
        ("all_reduce", [[0, 4], [1, 5], [2, 6], [3, 7]], 100, 10 + 100 / 10),
        # device 0 has nobody of its host beside it: everything comes from afar
        ("all_gather", [[0, 4, 5, 6], [1, 2, 3, 7]], 300, 10 + 300 / 10),
        ("collective_permute", [[0, 1], [1, 0]], 100, 1 + 100 / 100),
        ("collective_permute", [[0, 1], [1, 4]], 100, 10 + 100 / 10),
    ],
)
def test_two_hosts_by_hand(kind, groups, received, want):
    assert seconds(HOSTS, kind, received, np.array(groups)) == pytest.approx(want)


def lattice(axes):
    """The groups along ``axes`` of the devices that they span, in mixed order."""
    inside = [sum(place) for place in itertools.product(*[range(0, a.size * a.stride, a.stride) for a in axes])]
    starts, seen = [], set()
    for device in range(max(inside) + 1):
        if device not in seen:
            starts.append(device)
            seen.update(device + d for d in inside)
    rng = np.random.default_rng(len(inside))
    return np.array([rng.permutation([start + d for d in inside]) for start in starts])


@pytest.mark.parametrize(
    "axes",
    [
        (Axis(8),),
        (Axis(4, 2),),
        (Axis(2, 8), Axis(2, 1)),
        (Axis(3, 12), Axis(2, 2)),
        (Axis(2, 32), Axis(4, 4), Axis(2, 1)),
    ],
)
def test_axes_are_read_off_the_groups_whatever_their_order(axes):
    assert axes_of(lattice(axes)) == axes


def test_axes_end_where_those_of_the_mesh_do():
    groups = np.arange(16)[None]
    assert axes_of(groups) == (Axis(16),)
    assert axes_of(groups, borders=(4, 1)) == (Axis(4, 4), Axis(4))
    assert axes_of(groups, borders=(16, 3)) == (Axis(16),)  # borders that the run does not end at


def test_groups_of_several_shapes_have_no_axes():
    assert axes_of(np.array([[0, 1], [2, 4]])) == ()
    assert axes_of(np.array([[0, 1, 3]])) == ()


@pytest.mark.parametrize("name", ["h100", "b200", "v5p", "v5e-slices", "mi300x", "cpu"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != PERMUTE])
def test_groups_cost_what_their_axes_do(kind, name):
    machine = find_machine(name)
    for axes in ((Axis(8),), (Axis(32),), (Axis(4, 8), Axis(2)), (Axis(16, 16), Axis(4, 4))):
        one = Collective(kind, axes, 1 << 24)
        borders = [axis.stride for axis in axes]
        assert seconds(machine, kind, one.received, lattice(axes), borders) == pytest.approx(machine.seconds(one))


def test_the_tier_of_groups_is_the_innermost_that_joins_all_members():
    three = switched("three", 1.0, 1.0, 1.0, blocks=((2, 0.1, 10.0), (8, 0.5, 5.0)))
    for groups, tier in (([[0, 1], [2, 3]], 0), ([[1, 2]], 1), ([[0, 7], [8, 9]], 1), ([[0, 1], [7, 8]], 2)):
        assert tier_of(three, np.array(groups)) == tier


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", [2, 3, 8])
def test_the_whole_follows_from_what_is_received(kind, devices):
    for whole in (devices, 12 * devices, 4096 * devices):
        assert whole_of(kind, bytes_received(kind, whole, devices), devices) == whole
    assert whole_of(kind, 7, 1) == 7


@pytest.mark.parametrize("name", ["h100", "v5p-slices", "mi300x", "ideal"])
def test_no_collective_is_faster_than_the_least(name):
    machine = find_machine(name)
    for kind, axes in itertools.product(KINDS, ((Axis(2),), (Axis(8),), (Axis(16, 4),), (Axis(4, 16), Axis(4, 4)))):
        one = Collective(kind, axes, 1 << 20)
        assert machine.least(one.received) <= machine.seconds(one) * (1 + 1e-12)
    assert machine.least(0) == 0.0
