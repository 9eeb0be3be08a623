"""Unreduced sources: on XLA's devices against NumPy sums, and what must be refused."""

import execution as x
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import estimate_bytes, plan_redistribution
from shardpass.sharding import Mesh, Sharding

MESH = Mesh((("x", 2), ("y", 2), ("z", 2)))


def sharding(*dims, unreduced=()):
    return Sharding.tiled(MESH, dims, unreduced=unreduced)


def run(shape, source, target, planner):
    """Random summands in; the sum of what the target's replicas hold, tile by tile, against the whole sum."""
    plan = plan_redistribution(shape, "i32", source, target, planner=planner)
    rng = np.random.default_rng(0)
    before = source.number(source.unreduced)
    summands = [rng.integers(-50, 50, shape) for _ in range(int(before.max()) + 1)]
    base = source.tile_offsets(shape, 8)
    tiles = [
        x.tile_of(summands[before[d]], base[d], plan.source_tile, 9).astype(np.int32) for d in range(plan.num_devices)
    ]
    got = x.execute(x.compile_text(plan.to_module(), 8), tiles)
    after = target.number(target.unreduced) if target.unreduced else np.zeros(8, int)
    whole = sum(summands)
    for d, offset in enumerate(target.tile_offsets(shape, 8)):
        want = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(offset, plan.target_tile, strict=True))]
        peers = [
            e
            for e in range(8)
            if (target.tile_offsets(shape, 8)[e] == offset).all()
            # one device of each class of summands, on the other axes where d is
            and all(
                target.number((a,))[e] == target.number((a,))[d]
                for a in target.replicated_axes
                if a not in target.unreduced
            )
        ]
        assert len({int(after[e]) for e in peers}) == len(peers)
        total = sum(got[e] for e in peers)
        np.testing.assert_array_equal(total[tuple(slice(n) for n in want.shape)], want)
    return plan


CASES = {
    "scattered where it is split": (sharding("x", (), unreduced="y"), sharding("x", "y"), ["reduce_scatter"]),
    "summed where it is whole": (sharding("x", (), unreduced="y"), sharding("x", ()), ["all_reduce"]),
    "few steps for a small array": (
        sharding((), (), unreduced="xyz"),
        sharding(("z", "x"), ()),
        ["all_reduce", "dynamic_slice"],
    ),
    "then moved": (
        sharding("x", (), unreduced="yz"),
        sharding((), "x", unreduced="z"),
        ["all_reduce", "all_to_all"],
    ),
    "kept": (sharding("x", (), unreduced="y"), sharding((), "x", unreduced="y"), ["all_to_all"]),
    "kept as it is": (sharding("x", (), unreduced="y"), sharding("x", (), unreduced="y"), []),
    "sliced before": (
        sharding((), (), unreduced="x"),
        sharding("y", "x"),
        ["dynamic_slice", "reduce_scatter"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(8, 8), (7, 6)], ids=["even", "uneven"])
def test_sums_are_right(name, shape):
    source, target, kinds = CASES[name]
    plan = run(shape, source, target, "best")
    assert [step.kind for step in plan.steps] == kinds


@pytest.mark.parametrize("name", ["scattered where it is split", "summed where it is whole", "sliced before"])
def test_rink_reduces_first(name):
    source, target, _ = CASES[name]
    plan = run((8, 8), source, target, "rink")
    assert plan.steps[0].kind == "all_reduce"


def test_unreduced_without_a_mesh_is_over_all_devices():
    plan = plan_redistribution((8, 8), "f32", "{unreduced}", "{devices=[8,1]<=[8]}")
    assert [step.kind for step in plan.steps] == ["reduce_scatter"]
    assert plan.bytes_received == 7 * 8 * 4


def test_partial_sums_are_not_made():
    with pytest.raises(ShardpassError, match="SP408"):
        plan_redistribution((8, 8), "f32", sharding("x", ()), sharding("x", (), unreduced="y"))


def test_a_great_array_is_scattered_before_it_is_summed():
    source, target = sharding((), (), unreduced="xyz"), sharding(("z", "x"), ())
    plan = plan_redistribution((4096, 4096), "f32", source, target)
    whole = 4 * 4096 * 4096
    assert [step.kind for step in plan.steps] == ["reduce_scatter", "all_reduce"]
    assert [step.bytes for step in plan.steps] == [whole * 3 // 4, whole // 4]  # an all_reduce of a quarter, by two


def test_sums_that_are_kept_move_like_as_many_arrays():
    """Thirds against halves, which no list of sub-axes says; of two sums of each element there are two arrays."""
    mesh = Mesh((("a", 2), ("b", 3), ("u", 2)))
    sides = [Sharding.tiled(mesh, dims, unreduced="u") for dims in (("a", "b"), ("b", "a"))]
    stacked = [Sharding.tiled(mesh, ("u", *dims)) for dims in (("a", "b"), ("b", "a"))]
    kept = plan_redistribution((600, 600), "f32", *sides)
    assert kept.received.tolist() == plan_redistribution((2, 600, 600), "f32", *stacked).received.tolist()
    assert [step.tile_after for step in kept.steps][-1] == kept.target_tile == (200, 300)
    assert kept.steps[0].tile_before == kept.source_tile == (300, 200)
    assert (kept.shape, kept.source, kept.target) == ((600, 600), *sides)


@pytest.mark.parametrize(
    ("source", "target", "received"),
    [
        (sharding("x", ()), sharding((), ()), 128),  # of 256 bytes half is at hand
        (sharding((), ()), sharding("x", ()), 0),
        (sharding("x", ()), sharding((), "x"), 64),  # half of the tile
    ],
)
def test_estimated_bytes_are_those_of_the_plan(source, target, received):
    assert estimate_bytes((8, 8), "f32", source, target) == received
