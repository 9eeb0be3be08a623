"""Many arrays in one plan: right, within a limit of memory, and small arrays in one message."""

import numpy as np
import pytest
from support.transfers import simulate

from shardpass import ShardpassError, plan_reshard_tree

ROWS = "{{devices=[{0},1]<=[{0}]}}"
COLUMNS = "{{devices=[1,{0}]<=[{0}]}}"


def layers(count, rows=12):
    return {
        "layers": [
            {
                "up": ((rows, 8), "f32", ROWS.format(6), COLUMNS.format(4)),
                "norm": ((12,), "f32", "{replicated}", "{replicated}"),
            }
            for _ in range(count)
        ]
    }


def plan(tree, **more):
    return plan_reshard_tree(tree, source_devices=range(6), target_devices=range(4, 8), machine="ideal", **more)


@pytest.mark.parametrize("limit", ["max", 2200])
def test_all_arrays_arrive(limit):
    found = plan(layers(5), memory_limit=limit)
    values = [np.arange(np.prod(array.shape)).reshape(array.shape) + 1000 * k for k, array in enumerate(found.arrays)]
    for array, value, tiles in zip(found.arrays, values, simulate(found, values), strict=True):
        for k, device in enumerate(range(4, 8)):
            wanted = value if array.name.endswith("norm") else value[:, 2 * k : 2 * k + 2]
            np.testing.assert_array_equal(tiles[device], wanted)
    assert [array.name for array in found.arrays][:3] == ["layers/0/up", "layers/0/norm", "layers/1/up"]


def test_what_goes_from_one_device_to_another_is_one_message():
    """40 arrays of 4 bytes for each pair of devices: as many messages as one such array."""
    one = {"w": ((4, 4), "i8", ROWS.format(4), COLUMNS.format(4))}
    many = {str(k): ((4, 4), "i8", ROWS.format(4), COLUMNS.format(4)) for k in range(40)}
    lists = {"source_devices": range(4), "target_devices": range(4, 8), "machine": "default"}
    counts = [sum(map(len, plan_reshard_tree(tree, **lists).rounds)) for tree in (one, many)]
    assert counts == [16, 16]


def test_a_limit_makes_waves():
    """Devices 4 and 5 hold sources and targets: 8 arrays of 2 rows of 8 and of 12 rows of 2, 64 and 96 bytes."""
    tree = {str(k): ((12, 8), "f32", ROWS.format(6), COLUMNS.format(4)) for k in range(8)}
    whole = plan(tree)
    assert whole.peak_bytes >= 8 * (64 + 96)
    less = plan(tree, memory_limit=8 * 96 + 2 * 64 + 96)
    assert len(less.waves) > 1
    assert less.peak_bytes <= 8 * 96 + 2 * 64 + 96
    with pytest.raises(ShardpassError) as raised:
        plan(tree, memory_limit=8 * 96 - 1)
    assert raised.value.diagnostics[0].code == "SP413"


@pytest.mark.parametrize("leaf", [3, None, ((8,), "f32", "{replicated}"), "text"])
def test_leaves_that_are_none(leaf):
    with pytest.raises(ShardpassError) as raised:
        plan_reshard_tree({"a": [leaf]})
    assert raised.value.diagnostics[0].code == "SP420"
    assert raised.value.diagnostics[0].message.startswith("a/0 is ")


def test_an_empty_tree():
    assert plan_reshard_tree({}).rounds == ()
