"""Sub-axes of a mesh beside a device order that no mesh shares: what once was an assertion of the planner."""

from __future__ import annotations

import itertools
import random

import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.sharding import AxisRef, Mesh, Sharding, parse_sharding

ORDER = (5, 0, 3, 1, 4, 2, 6, 7)
MESH = Mesh((("d", 8),), ORDER)
HALF, QUARTER, MINOR = AxisRef("d", 1, 2), AxisRef("d", 1, 4), AxisRef("d", 4, 2)
ON_MESH = [Sharding.tiled(MESH, dims) for dims in ([[HALF]], [[QUARTER]], [[MINOR]], [["d"]])]
OTHERS = [
    parse_sharding(text) for text in ("{devices=[8]<=[2,2,2]T(2,1,0)}", "{devices=[4,2]<=[8] last_tile_dim_replicate}")
]


@pytest.mark.parametrize("size", [7, 8, 16])
@pytest.mark.parametrize(("mine", "other"), list(itertools.product(ON_MESH, OTHERS)))
def test_plans_are_proved_both_ways(mine: Sharding, other: Sharding, size: int) -> None:
    """``plan_redistribution`` raises where its simulator does not end in the target."""
    for source, target in ((mine, other), (other, mine)):
        plan = plan_redistribution((size,), "f32", source, target)
        assert plan.bytes_received >= plan.lower_bound_bytes


def test_random_orders() -> None:
    rng = random.Random(0)
    for _ in range(30):
        mesh = Mesh((("a", 4), ("b", 2)), rng.sample(range(8), 8))
        source = Sharding.tiled(mesh, [[AxisRef("a", 2, 2)], ["b"]])
        target = Sharding.tiled(Mesh((("d", 8),), rng.sample(range(8), 8)), [[AxisRef("d", 2, 4)], []])
        plan = plan_redistribution((6, 5), "f32", source, target)
        assert plan.bytes_received >= plan.lower_bound_bytes
