"""Plans for more devices than this machine has: proved by the simulator, and bounded in steps."""

import math
import random

import pytest

from shardpass.redistribute import PLANNERS, plan_redistribution
from shardpass.sharding import Mesh, Sharding


def random_sharding(rng, sizes, rank):
    names = [f"m{i}" for i in range(len(sizes))]
    dims = [[] for _ in range(rank)]
    for axis in rng.sample(names, len(names)):
        place = rng.randint(-1, rank - 1)
        if place >= 0:
            dims[place].append(axis)
    return Sharding.tiled(Mesh(tuple(zip(names, sizes, strict=True))), dims)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("sizes", [(64, 64), (16, 16, 16), (4, 16, 64), (12, 30, 8)], ids=str)
def test_thousands_of_devices(sizes, planner):
    rng = random.Random(str(sizes))
    for _ in range(3):
        source, target = (random_sharding(rng, sizes, 3) for _ in range(2))
        plan = plan_redistribution((17280, 8192, 8192), "bf16", source, target, planner=planner)
        assert len(plan.steps) <= 10


def test_sizes_that_do_not_divide_slide_their_borders():
    """1000 rows in tiles of 2 (1024) against tiles of 63 (1008): the latter shrink from 64, by a row for each tile."""
    plan = plan_redistribution((1000, 64), "f32", "{devices=[512,1]<=[512]}", "{devices=[16,32]<=[512]}")
    assert plan.peak_bytes == 4 * 64 * 2
    assert [step.kind for step in plan.steps] == ["all_to_all", "collective_permute"]
    assert plan.steps[1].bytes == 4 * 15 * 2


def test_tiles_of_a_row_or_two_that_cross_gather_the_dimension():
    """Tiles of 1 row against 9: the last of them would slide by 22 rows from tiles of 11."""
    plan = plan_redistribution((100, 66), "f32", "{devices=[132,1]<=[132]}", "{devices=[12,11]<=[132]}")
    assert plan.steps[0].kind == "all_gather"
    assert plan.peak_bytes == 4 * 132 * 66


@pytest.mark.parametrize("target", ["{replicated}", "{devices=[16,32]<=[512]}", "{maximal device=77}"])
def test_from_one_device_to_many_in_doublings(target):
    plan = plan_redistribution((64, 64), "f32", "{maximal device=300}", target, num_devices=512)
    permutes = [s for s in plan.steps if s.kind == "collective_permute"]
    assert len(permutes) <= math.log2(512)


def test_65536_devices():
    plan = plan_redistribution(
        (65536, 65536), "f32", "{devices=[256,256]<=[65536]}", "{devices=[1,256,256]<=[65536] last_tile_dim_replicate}"
    )
    assert plan.bytes_received == plan.lower_bound_bytes
