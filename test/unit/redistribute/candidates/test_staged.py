"""Gathers in stages on machines with slow and fast links: fewer bytes over the slow ones, no byte more in all."""

import itertools
import math

import execution as x
import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.redistribute.terms.costs import Link, Profile
from shardpass.sharding import Mesh, Sharding

FAST, SLOW = Link(1e-6, 1e11), Link(1e-5, 1e9)
PAIRS = Profile("pairs", SLOW.latency, SLOW.bandwidth, math.inf, blocks=((2, FAST),))
THREE = Profile("three", SLOW.latency, SLOW.bandwidth, math.inf, blocks=((2, FAST), (4, Link(5e-6, 1e10))))
FLAT = Profile("flat", SLOW.latency, SLOW.bandwidth, math.inf)
M222 = Mesh((("a", 2), ("b", 2), ("c", 2)))


def plan(source, target, profile, shape=(1 << 12, 1 << 10), element="f32", **rest):
    sides = [Sharding.tiled(M222, [tuple(dim) for dim in side]) for side in (source, target)]
    return plan_redistribution(shape, element, *sides, profile=profile, **rest)


def crossing(plan, size):
    """Bytes that a device gets from others outside its block of ``size``, member by member; most over devices."""
    out = np.zeros(plan.num_devices)
    for step in plan.steps:
        for group in step.groups.tolist() if step.kind != "collective_permute" else ():
            for d in group:
                out[d] += step.bytes * sum(d // size != e // size for e in group) / (len(group) - 1)
    return out.max()


def kinds(plan):
    return [step.kind for step in plan.steps]


def test_slow_links_carry_what_a_place_needs():
    """abc gathered: 7/8 of the array arrive; of it 6/8 from other pairs, or 3/8 and then the neighbour's half."""
    array = 4 << 22
    flat, staged = (plan(("abc", ""), ("", ""), profile) for profile in (FLAT, PAIRS))
    assert (kinds(flat), kinds(staged)) == (["all_gather"], ["all_gather"] * 2)
    assert flat.bytes_received == staged.bytes_received == flat.lower_bound_bytes == 7 * array // 8
    assert (crossing(flat, 2), crossing(staged, 2)) == (6 * array / 8, 3 * array / 8)
    assert [step.axes for step in staged.steps] == [("a", "b"), ("c",)]
    want = SLOW.latency + 3 * array / 8 / SLOW.bandwidth + FAST.latency + array / 2 / FAST.bandwidth
    assert staged.seconds == pytest.approx(want)


def test_three_tiers_are_three_stages():
    assert [step.axes for step in plan(("abc", ""), ("", ""), THREE).steps] == [("a",), ("b",), ("c",)]


def test_one_tier_is_one_stage():
    assert kinds(plan(("ab", ""), ("", ""), PAIRS)) == ["all_gather"]
    assert kinds(plan(("a", "c"), ("a", ""), PAIRS)) == ["all_gather"]


def test_a_small_array_is_gathered_at_once():
    """Where a second latency costs more than the slow bytes that it saves."""
    assert kinds(plan(("abc", ""), ("", ""), PAIRS, (8, 1))) == ["all_gather"]


@pytest.mark.parametrize(
    ("source", "target"),
    [(("abc", ""), ("", "")), (("c", "ab"), ("", "")), (("abc", ""), ("", "b")), (("ab", "c"), ("b", ""))],
)
def test_on_xla(source, target):
    found = plan(source, target, THREE, (64, 64), "i32")
    whole = x.numbered((64, 64))
    x.expect_tiles(found, whole, x.run_plan(found, whole))


def test_every_reshard_is_at_least_as_cheap_as_the_plan_for_a_flat_machine():
    """All pairs of placements of three axes on two dimensions, the flat plan priced on the tiered machine."""
    placements = [
        tuple("".join(a for a, p in zip("abc", places, strict=True) if p == d) for d in range(2))
        for places in itertools.product((-1, 0, 1), repeat=3)
    ]
    staged = 0
    for source, target in itertools.product(placements, repeat=2):
        tiered, flat = (plan(source, target, profile) for profile in (PAIRS, FLAT))
        assert tiered.seconds <= PAIRS.seconds(flat.steps, _names()) * (1 + 1e-9)
        staged += kinds(tiered).count("all_gather") > 1
    assert staged > 10


def _names():
    return sub_axes_of(M222)


def summed(target, profile, shape=(1 << 12, 1 << 10), element="f32", axes="abc"):
    """Partial sums over ``axes`` brought to ``target``."""
    source = Sharding.tiled(M222, ((),) * len(shape), unreduced=tuple(axes))
    aim = Sharding.tiled(M222, [tuple(dim) for dim in target])
    return plan_redistribution(shape, element, source, aim, profile=profile)


def test_sums_are_scattered_in_a_host_and_added_between_hosts():
    """Of w bytes w/2 come from the other of a pair, of that half twice 3/4 from other pairs, and again w/2."""
    array = 4 << 22
    flat, staged = (summed(("", ""), profile) for profile in (FLAT, PAIRS))
    assert (kinds(flat), kinds(staged)) == (["all_reduce"], ["reduce_scatter", "all_reduce", "all_gather"])
    assert [step.axes for step in staged.steps] == [("c",), ("a", "b"), ("c",)]
    assert [step.bytes for step in staged.steps] == [array // 2, 2 * (array // 2) * 3 // 4, array // 2]
    assert (crossing(flat, 2), crossing(staged, 2)) == (2 * array * 6 / 8, 2 * array / 2 * 3 / 4)
    slow = SLOW.latency + 3 * array / 4 / SLOW.bandwidth
    assert staged.seconds == pytest.approx(slow + 2 * (FAST.latency + array / 2 / FAST.bandwidth))


@pytest.mark.parametrize(
    ("target", "shape"), [(("", ""), (6, 5)), (("a", ""), (8, 6)), (("", ""), (5, 6)), (("", ""), (5, 7))]
)
@pytest.mark.parametrize("axes", ["abc", "ac", "bc"])
def test_sums_on_xla(target, shape, axes):
    """Whatever is summed in whatever order; where nothing can be cut in two, the sum is one all_reduce."""
    bytes_alone = Profile("bytes alone", 0.0, 1e3, math.inf, blocks=((2, Link(0.0, 1e6)),))
    found = summed(target, bytes_alone, shape, "i32", axes)
    rng = np.random.default_rng(0)
    places = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)))
    keys = [tuple(places["abc".index(a), d] for a in axes) for d in range(8)]
    parts = {key: rng.integers(-99, 99, shape, dtype=np.int32) for key in sorted(set(keys))}
    got = x.execute(x.compile_text(found.to_module(), 8), [parts[key] for key in keys])
    x.expect_tiles(found, sum(parts.values()), got)
    divides = any(n % 2 == 0 for n in shape)
    assert ("reduce_scatter" in kinds(found)) == (divides or "a" in target[0])
