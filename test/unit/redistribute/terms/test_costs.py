"""Prices: by hand on machines small enough, and beside a sum over every pair of devices."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.redistribute.program.steps import Step
from shardpass.redistribute.terms.costs import PROFILES, Link, Profile, step_seconds, tiers
from shardpass.sharding import Mesh

NEAR, FAR = Link(1.0, 100.0), Link(10.0, 10.0)
HOSTS = Profile("hosts", FAR.latency, FAR.bandwidth, math.inf, blocks=((4, NEAR),))
M242 = Mesh((("a", 2), ("b", 4), ("c", 2)))
AXES = Profile("axes", 7.0, 3.0, math.inf, axes=(("a", FAR), ("c", NEAR)))  # b is what no one says: 7 s, 3 bytes/s


def step(kind, groups, size):
    return Step(kind, (), np.array(groups), (1,), (1,), size, 0)


def seconds(profile, kind, groups, size, mesh):
    return step_seconds(step(kind, groups, size), tiers(profile, sub_axes_of(mesh)))


M8 = Mesh((("x", 8),))


@pytest.mark.parametrize(
    ("kind", "groups", "size", "want"),
    [
        # 700 bytes from 7 peers: 300 from three in the host at 100 a second, 400 from the other host at 10
        ("all_gather", [[0, 1, 2, 3, 4, 5, 6, 7]], 700, 10 + 300 / 100 + 400 / 10),
        ("all_to_all", [[0, 1], [2, 3], [4, 5], [6, 7]], 100, 1 + 100 / 100),
        ("all_reduce", [[0, 4], [1, 5], [2, 6], [3, 7]], 100, 10 + 100 / 10),
        # three from afar and none near, beside three near and none afar: the busiest device counts
        ("all_gather", [[0, 4, 5, 6], [1, 2, 3, 7]], 300, 10 + 300 / 10),
        ("collective_permute", [[0, 1], [1, 0]], 100, 1 + 100 / 100),
        ("collective_permute", [[0, 1], [1, 4]], 100, 10 + 100 / 10),
    ],
)
def test_two_hosts_by_hand(kind, groups, size, want):
    assert seconds(HOSTS, kind, groups, size, M8) == pytest.approx(want)


def slowest(profile, mesh, one, other):
    """The link between two devices, from the definition."""
    if profile.blocks:
        return next((link for size, link in profile.blocks if one // size == other // size), profile.link)
    place = [np.unravel_index(int(np.flatnonzero(mesh.order == d)[0]), mesh.shape) for d in (one, other)]
    known = dict(profile.axes)
    crossed = [known.get(name, profile.link) for (name, _), a, b in zip(mesh.axes, *place, strict=True) if a != b]
    return min(crossed, key=lambda link: (link.bandwidth, -link.latency))


def by_pairs(profile, mesh, kind, groups, size):
    """Every device's peers one by one."""
    busiest, latency = 0.0, 0.0
    if kind == "collective_permute":
        links = [slowest(profile, mesh, *pair) for pair in groups]
        return max(link.latency for link in links) + max(size / link.bandwidth for link in links)
    for group in groups:
        for one in group:
            links = [slowest(profile, mesh, one, other) for other in group if other != one]
            busiest = max(busiest, sum(size / (len(group) - 1) / link.bandwidth for link in links))
            latency = max(latency, *(link.latency for link in links))
    return latency + busiest


THREE = Profile("three", 30.0, 2.0, math.inf, blocks=((2, Link(0.5, 500.0)), (8, Link(2.0, 50.0))))


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_groups_cost_what_their_pairs_do(data):
    profile = data.draw(st.sampled_from((HOSTS, AXES, THREE)))
    order = data.draw(st.permutations(range(16)))
    mesh = Mesh(M242.axes, tuple(data.draw(st.permutations(range(16))))) if profile.axes else M242
    if data.draw(st.booleans()):
        count = data.draw(st.integers(1, 16))
        pairs = [(s, t) for s, t in zip(order, range(16), strict=True) if s != t][:count]
        groups, kind = pairs or [(0, 1)], "collective_permute"
    else:
        size = data.draw(st.sampled_from((2, 4, 8, 16)))
        groups, kind = [order[i : i + size] for i in range(0, 16, size)], "all_gather"
    size = data.draw(st.integers(0, 10**6))
    want = by_pairs(profile, mesh, kind, groups, size)
    assert seconds(profile, kind, groups, size, mesh) == pytest.approx(want)


def test_a_machine_of_one_host_knows_no_network():
    assert seconds(HOSTS, "all_gather", [[0, 1, 2, 3]], 300, Mesh((("x", 4),))) == pytest.approx(1 + 300 / 100)


def test_a_plan_costs_its_steps_and_its_copies():
    """An all_to_all of rows to columns takes 7 of 8 blocks; the two passes through memory are what is beside.

    The tile is [1, 8]: one row is cut into pieces of one element, which are joined along the row and then turned.
    """
    profile = Profile("slow copies", 1.0, 10.0, 5.0, runs=math.inf, elements=20.0, places=math.inf)
    plan = plan_redistribution((8, 8), "i8", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}", profile=profile)
    assert [s.kind for s in plan.steps] == ["all_to_all"]
    assert plan.seconds == pytest.approx(1.0 + 7 / 10 + 2 * 8 / 5 + 2 * 8 / 20)


def test_slow_axes_are_the_ones_that_cost():
    """The same exchange along one axis or the other, the links swapped: the price goes with the link."""
    mesh = "mesh['host'=4,'chip'=4]"
    plans = {
        (slow, axis): plan_redistribution(
            (1024, 1024),
            "f32",
            f"{{{mesh}, [{{'{axis}'}}, {{}}]}}",
            f"{{{mesh}, [{{}}, {{'{axis}'}}]}}",
            profile=Profile("p", 1e-5, 5e10, math.inf, axes=((slow, Link(1e-4, 1e9)),)),
        )
        for slow, axis in itertools.product(("host", "chip"), repeat=2)
    }
    tile = 1024 * 256 * 4
    for (slow, axis), plan in plans.items():
        link = Link(1e-4, 1e9) if slow == axis else Link(1e-5, 5e10)
        assert plan.seconds == pytest.approx(link.latency + tile * 3 / 4 / link.bandwidth)


def test_the_paper_counts_bytes_alone():
    plan = plan_redistribution(
        (64, 64), "f32", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}", profile=PROFILES["paper"]
    )
    assert plan.seconds == plan.bytes_received
