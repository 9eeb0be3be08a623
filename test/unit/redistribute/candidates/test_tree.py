"""From one device to many: dearer on more devices, a round for each doubling, and each device receives once."""

import math

import execution as x
import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution

WHOLE = (1 << 20,)  # 4 MiB of f32


def seconds(devices, kind, limit):
    target = targets(devices)[kind]
    source = "{maximal device=0}"
    return plan_redistribution(WHOLE, "f32", source, target, num_devices=devices, memory_limit=limit).seconds


def targets(devices):
    return ["{replicated}", f"{{devices=[{devices}]<=[{devices}]}}", "{maximal device=7}"]


@pytest.mark.parametrize("kind", range(3), ids=["replicated", "split", "one-device"])
def test_more_devices_cost_no_less(kind):
    times = [seconds(n, kind, None) for n in (64, 65, 200)]
    assert times == sorted(times)


@pytest.mark.parametrize("kind", range(3), ids=["replicated", "split", "one-device"])
def test_64_devices_cost_no_more_than_65_within_the_default_limit(kind):
    assert seconds(64, kind, "max") <= seconds(65, kind, "max")


@pytest.mark.parametrize("devices", [5, 8, 33, 64, 65])
def test_a_broadcast_doubles_with_each_round(devices):
    plan = plan_redistribution(WHOLE, "f32", "{maximal device=3}", "{replicated}", num_devices=devices)
    assert len(plan.steps) == math.ceil(math.log2(devices))
    assert {step.kind for step in plan.steps} == {"collective_permute"}
    assert plan.received.tolist() == [0 if d == 3 else 4 << 20 for d in range(devices)]


def test_partly_replicated_tiles_are_scattered_and_doubled_within_the_default_limit():
    """2 MiB each of two halves: after the first round each device holds a half."""
    plan = plan_redistribution(
        WHOLE, "f32", "{maximal device=0}", "{devices=[2,32]<=[64] last_tile_dim_replicate}", num_devices=64
    )
    assert [step.bytes for step in plan.steps] == [2 << 20] * 6
    assert int(plan.received.sum()) == 63 * (2 << 20)


def test_a_scatter_halves_what_it_sends():
    sides = "{maximal device=0}", "{devices=[8]<=[8]}"
    plan = plan_redistribution((64,), "f32", *sides, num_devices=8, memory_limit=None)
    assert [step.bytes for step in plan.steps] == [4 * 32, 4 * 16, 4 * 8]
    assert plan.received.tolist() == [0, 32, 64, 32, 128, 32, 64, 32]


@pytest.mark.parametrize("target", ["{maximal device=299}", "{maximal device=0}"])
def test_from_one_of_many_devices_to_another_is_one_permute(target):
    plan = plan_redistribution((64, 64), "f32", "{maximal device=300}", target, num_devices=512)
    assert [step.kind for step in plan.steps] == ["collective_permute"]


@pytest.mark.parametrize("only", [0, 4, 11])
@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((), "{replicated}"),
        ((7, 5), "{replicated}"),
        ((24, 10), "{devices=[12,1]<=[12]}"),
        ((25, 7), "{devices=[4,3]<=[12]}"),
        ((25, 7), "{devices=[3,4]<=[4,3]T(1,0)}"),
        ((5, 9), "{devices=[6,1,2]<=[12] last_tile_dim_replicate}"),
        ((9,), "{devices=[12]<=[12]}"),
        ((3,), "{devices=[12]<=[4,3]T(1,0)}"),
    ],
    ids=str,
)
def test_every_device_has_its_tile_as_xla_runs_it(shape, target, only):
    """Uneven tiles, tiles of padding alone, and devices in any order."""
    source = f"{{maximal device={only}}}"
    plan = plan_redistribution(shape, "s32", source, target, num_devices=12, memory_limit=None)
    assert len(plan.steps) <= 4
    whole = x.numbered(shape)
    x.expect_tiles(plan, whole, x.run_plan(plan, whole))
    assert np.count_nonzero(plan.received) <= 11
