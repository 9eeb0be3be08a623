"""``plan_redistribution`` takes what people have at hand, and refuses the rest by the name of the argument."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass

ROWS, COLUMNS = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{devices=[1,8]<=[8]}"
MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, "bf16", jnp.dtype("bfloat16"), jnp.zeros(1, jnp.bfloat16).dtype])
def test_element_types(dtype: Any) -> None:
    plan = shardpass.plan_redistribution((64, 64), dtype, ROWS, COLUMNS)
    assert plan.element_type.mlir == "bf16"
    assert plan.bytes_received == shardpass.plan_redistribution((64, 64), "f16", ROWS, COLUMNS).bytes_received


def test_named_shardings() -> None:
    source, target = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, ("x", "y")))
    plan = shardpass.plan_redistribution((64, 64), jnp.float32, source, target)
    assert (str(plan.source), str(plan.target)) == (ROWS, COLUMNS)
    assert plan.bytes_received == shardpass.plan_redistribution((64, 64), "f32", ROWS, COLUMNS).bytes_received


def test_sizes_of_numpy() -> None:
    plan = shardpass.plan_redistribution(np.array([64, 64]), "f32", ROWS, COLUMNS, num_devices=np.int64(8))
    assert plan.shape == (64, 64)


def test_the_last_device() -> None:
    plan = shardpass.plan_redistribution((64, 64), "f32", "{devices=[8,1]<=[8]}", "{maximal device=7}")
    assert plan.target.device == 7


WRONG = [
    ({"shape": None}, "SP406", "None"),
    ({"shape": 64}, "SP406", "64"),
    ({"shape": "64,64"}, "SP406", "64,64"),
    ({"shape": (64.0, 64)}, "SP406", "64.0 is not a size"),
    ({"shape": (True, True)}, "SP406", "True is not a size"),
    ({"shape": (-1, 64)}, "SP406", "negative"),
    ({"element_type": None}, "SP405", "None"),
    ({"element_type": 5}, "SP405", "5"),
    ({"element_type": np.dtype("datetime64[s]")}, "SP405", "M8"),
    ({"element_type": "float33"}, "SP405", "float33"),
    ({"source": None}, "SP415", "the source is not a sharding: None"),
    ({"source": b"{replicated}"}, "SP415", "b'{replicated}'"),
    ({"target": []}, "SP415", "the target is not a sharding: []"),
    ({"target": P("x")}, "SP415", "the target is not a sharding: P"),
    ({"target": "{mesh['a'=8], [{}]}"}, "SP030", "splits 1 dimensions, but the array has 2"),
    ({"source": "{maximal device=8}"}, "SP404", "device 8 of {maximal device=8} is not one of the 8 devices"),
    ({"target": "{maximal device=8}"}, "SP404", "device 8 of {maximal device=8} is not one of the 8 devices"),
    ({"num_devices": "8"}, "SP416", "'8'"),
    ({"num_devices": 0}, "SP416", "0"),
    ({"num_devices": True}, "SP416", "True"),
    ({"num_devices": 8.0}, "SP416", "8.0"),
]


@pytest.mark.parametrize(("given", "code", "part"), WRONG, ids=lambda v: str(v)[:40])
def test_what_is_refused(given: dict[str, Any], code: str, part: str) -> None:
    arguments: dict[str, Any] = {"shape": (64, 64), "element_type": "f32", "source": ROWS, "target": COLUMNS, **given}
    with pytest.raises(shardpass.ShardpassError) as caught:
        shardpass.plan_redistribution(**arguments)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert part in found.message
    assert found.remedy


@pytest.mark.parametrize("planner", ["best", "rink"])
def test_tile_counts_that_are_all_one_fit_any_rank(planner: str) -> None:
    """They split nothing, as {replicated}: each device keeps one of eight columns and receives nothing."""
    whole, columns = "{devices=[1,1,8]<=[8] last_tile_dim_replicate}", "{devices=[1,1,8]<=[8]}"
    there = shardpass.plan_redistribution((4, 8, 8), "f32", whole, columns, planner=planner)
    assert (there.bytes_received, there.target_tile) == (0, (4, 8, 1))
    back = shardpass.plan_redistribution((4, 8, 8), "f32", columns, whole, planner=planner)
    assert (back.bytes_received, back.target_tile) == (7 * 4 * 8 * 4, (4, 8, 8))


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_the_last_device_is_one_less_than_there_are(side: int) -> None:
    """Of 4 devices number 3 is one and number 4 is none."""
    sides = ["{replicated}", "{replicated}"]
    sides[side] = "{maximal device=3}"
    assert shardpass.plan_redistribution((8,), "f32", *sides, num_devices=4).num_devices == 4
    sides[side] = "{maximal device=4}"
    with pytest.raises(shardpass.ShardpassError) as error:
        shardpass.plan_redistribution((8,), "f32", *sides, num_devices=4)
    assert error.value.code == "SP404"
    assert "0 to 3" in str(error.value)
