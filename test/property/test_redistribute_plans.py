"""Laws of every plan, on random problems: NumPy's model of the collectives agrees with slicing the whole array, memory
never exceeds the greater tile, bytes never go below the bound, the kinds of rink's steps come in normal form."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import daily

from shardpass.redistribute import plan_redistribution
from shardpass.sharding import Mesh, Sharding
from tools.prove.numpy_programs import evaluate

MESHES = ((2, 2), (8,), (2, 4), (2, 2, 2), (2, 3), (6,), (3, 4), (2, 2, 3), (2, 3, 4), (2, 2, 2, 2))
LETTER = {"dynamic_slice": "s", "all_to_all": "a", "collective_permute": "p", "all_gather": "g"}


@st.composite
def problems(draw, even):
    sizes = draw(st.sampled_from(MESHES))
    rank = draw(st.integers(1, 3))
    names = [f"m{i}" for i in range(len(sizes))]
    shardings, counts = [], []
    for _ in range(2):
        order = None
        if draw(st.integers(0, 9)) == 0:
            order = draw(st.permutations(range(math.prod(sizes))))
        dims = [[] for _ in range(rank)]
        for axis in draw(st.permutations(range(len(sizes)))):
            place = draw(st.integers(-1, rank - 1))
            if place >= 0:
                dims[place].append(names[axis])
        mesh = Mesh(tuple(zip(names, sizes, strict=True)), order)
        shardings.append(Sharding.tiled(mesh, dims))
        counts.append([math.prod(sizes[names.index(a)] for a in dim) for dim in dims])
    if even:
        shape = [math.lcm(*pair) * draw(st.integers(1, 2)) for pair in zip(*counts, strict=True)]
    else:
        shape = [draw(st.integers(1, 13)) for _ in range(rank)]
    return tuple(shape), *shardings


def tiles(plan, sharding, tile, whole):
    base = sharding.tile_offsets(plan.shape, plan.num_devices)
    out = []
    for row in base:
        local = np.full(tile, -1)
        part = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(row, tile, strict=True))]
        local[tuple(slice(n) for n in part.shape)] = part
        out.append((local, part.shape))
    return out


def right(plan):
    """NumPy's model against slicing; padding is not looked at."""
    whole = np.arange(math.prod(plan.shape)).reshape(plan.shape)
    before = [local for local, _ in tiles(plan, plan.source, plan.source_tile, whole)]
    after = evaluate(plan.program, before)
    for got, (want, real) in zip(after, tiles(plan, plan.target, plan.target_tile, whole), strict=True):
        assert got.shape == plan.target_tile
        part = tuple(slice(n) for n in real)
        np.testing.assert_array_equal(got[part], want[part])


def bound(plan):
    """Elements that a device must be sent, by counting them one by one."""
    whole = np.arange(math.prod(plan.shape)).reshape(plan.shape)
    most = 0
    sides = [tiles(plan, s, t, whole) for s, t in ((plan.source, plan.source_tile), (plan.target, plan.target_tile))]
    for (have, _), (want, _) in zip(*sides, strict=True):
        most = max(most, len(set(want.ravel().tolist()) - set(have.ravel().tolist()) - {-1}))
    return most


WAYS = (("rink", "default"), ("best", "default"), ("best", "paper"))  # by "paper", bytes outweigh steps


@pytest.mark.parametrize(("planner", "profile"), WAYS)
@settings(max_examples=daily.scaled(150), deadline=None)
@given(problem=problems(even=True))
def test_even_plans(planner, profile, problem):
    shape, source, target = problem
    plan = plan_redistribution(shape, "i8", source, target, planner=planner, machine=profile)
    right(plan)
    assert plan.peak_bytes == max(math.prod(plan.source_tile), math.prod(plan.target_tile))
    assert plan.lower_bound_bytes == bound(plan) <= plan.bytes_received
    if planner == "rink":
        assert re.fullmatch(r"s*[ap]*g*", "".join(LETTER[s.kind] for s in plan.steps))
        assert sum(s.kind == "collective_permute" for s in plan.steps) <= 1


@pytest.mark.parametrize(("planner", "profile"), WAYS)
@settings(max_examples=daily.scaled(100), deadline=None)
@given(problem=problems(even=False))
def test_uneven_plans(planner, profile, problem):
    shape, source, target = problem
    plan = plan_redistribution(shape, "i8", source, target, planner=planner, machine=profile)
    right(plan)
    assert plan.lower_bound_bytes == bound(plan) <= plan.bytes_received


@settings(max_examples=60, deadline=None)
@given(problem=problems(even=True))
def test_best_is_never_dearer_than_rink(problem):
    best, rink = (plan_redistribution(problem[0], "i8", *problem[1:], planner=p) for p in ("best", "rink"))
    assert best.bytes_received <= rink.bytes_received


@settings(max_examples=60, deadline=None)
@given(problem=problems(even=True))
def test_equal_shardings_need_nothing(problem):
    shape, source, _ = problem
    assert plan_redistribution(shape, "f32", source, str(source)).program == ()
