"""Values of which devices hold partial maxima or minima: joined by these, never added."""

import execution as x
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import plan_redistribution
from shardpass.sharding import Mesh, Sharding

MESH = Mesh((("x", 2), ("y", 2), ("z", 2)))
JOINS = {"max": np.maximum, "min": np.minimum, "sum": np.add}
TARGETS = {
    "whole": Sharding.tiled(MESH, ("x", ())),
    "scattered": Sharding.tiled(MESH, ("x", "y")),
    "moved": Sharding.tiled(MESH, ((), "x")),
    "replicated": Sharding.replicated(),
}


@pytest.mark.parametrize("planner", ["best", "rink"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reduction", JOINS)
def test_partial_values_are_joined_by_their_reduction(reduction: str, target: str, planner: str) -> None:
    source = Sharding.tiled(MESH, ("x", ()), unreduced="y", reduction=reduction)
    plan = plan_redistribution((4, 6), "i32", source, TARGETS[target], planner=planner, num_devices=8)
    rng = np.random.default_rng(0)
    parts = [rng.integers(-50, 50, (4, 6)).astype(np.int32) for _ in range(2)]
    before = [
        x.tile_of(parts[summand], base, plan.source_tile, 0)
        for base, summand in zip(source.tile_offsets((4, 6)), source.number(source.unreduced), strict=True)
    ]
    got = x.execute(x.compile_text(plan.to_module(), 8), before)
    x.expect_tiles(plan, JOINS[reduction](*parts), got)


def test_one_reduction_does_not_become_another() -> None:
    source, target = (Sharding.tiled(MESH, ("x", ()), unreduced="y", reduction=r) for r in ("max", "sum"))
    with pytest.raises(ShardpassError, match="SP408"):
        plan_redistribution((4, 6), "i32", source, target)


def test_what_stays_partial_keeps_its_reduction() -> None:
    source = Sharding.tiled(MESH, ("x", ()), unreduced="yz", reduction="max")
    target = Sharding.tiled(MESH, ((), "x"), unreduced="z", reduction="max")
    plan = plan_redistribution((4, 6), "i32", source, target)
    assert [op.reduction for op in plan.program if hasattr(op, "reduction")] == ["max"]
