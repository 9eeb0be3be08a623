"""Problems on which tools/fuzz/redistribute.py has found a planner wrong, made as simple as they go.

Each is held to the laws of tools/prove/redistribution_laws.py, by simulator and on NumPy arrays.
"""

from __future__ import annotations

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import plan_redistribution
from tools.prove import redistribution_laws as laws
from tools.prove.redistribution_problems import Problem, Side

# shape, element type, source, target, devices
FOUND = {
    "scalars exchanged": ((), "ui16", "{maximal device=6}", "{replicated}", 8),
    "one row, gathered with its padding": (
        (2, 1),
        "i32",
        "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}",
        8,
    ),
    "padding greater than the tile": (
        (3, 1, 2, 12),
        "f8E5M2",
        "{devices=[1,1,3,4]<=[12]}",
        "{devices=[1,3,1,2,2]<=[12] last_tile_dim_replicate}",
        12,
    ),
    "eleven rows on two devices, one column on 24": (
        (11, 1),
        "i32",
        "{devices=[2,12]<=[2,2,6]T(1,0,2)}",
        "{devices=[1,24]<=[24]}",
        24,
    ),
    "four tiles to eight, of two elements": (
        (2,),
        "ui2",
        "{devices=[2,4]<=[8] last_tile_dim_replicate}",
        "{devices=[8]<=[2,2,2]T(1,0,2)}",
        8,
    ),
    "nine rows on eight devices": (
        (2, 1, 1, 9, 1),
        "f64",
        "{devices=[1,1,1,8,1]<=[8]}",
        "{devices=[1,2,1,1,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
        8,
    ),
    "borders that cross, tiles that are empty": (
        (1, 10),
        "i8",
        "{devices=[9,1]<=[3,3]T(1,0)}",
        "{devices=[3,3]<=[9]}",
        9,
    ),
    "thirds against halves of three rows": (
        (3, 3),
        "i16",
        "{devices=[3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}",
        "{devices=[2,3]<=[6]}",
        6,
    ),
    "two rows on 24 devices in another order": (
        (2,),
        "f8E4M3FN",
        "{devices=[12,2]<=[4,6]T(1,0) last_tile_dim_replicate}",
        "{devices=[24]<=[2,2,3,2]T(3,0,2,1)}",
        24,
    ),
    "an exchange beside padding": (
        (7, 9),
        "i32",
        "{devices=[1,6,2]<=[2,6]T(1,0) last_tile_dim_replicate}",
        "{devices=[4,3]<=[12]}",
        12,
    ),
    "one sum on 24 devices, scattered with its padding": ((1,), "i32", "{unreduced}", "{devices=[24]<=[24]}", 24),
    "sums scattered over more devices than rows": (
        (9, 3, 2, 7),
        "i16",
        "{devices=[1,1,1,4,2]<=[2,4]T(1,0) last_tile_dims={unreduced}}",
        "{devices=[1,1,8,1]<=[8]}",
        8,
    ),
}
KEPT = {  # partial sums that stay, which the paper does not know
    "tiles that do not nest": (
        (12,),
        "ui16",
        "{devices=[12,2]<=[2,2,2,3]T(2,0,3,1) last_tile_dims={unreduced}}",
        "{devices=[6,2,2]<=[2,2,6]T(2,1,0) last_tile_dims={unreduced, replicated}}",
        24,
    ),
    "devices in another order": (
        (8,),
        "f64",
        "{devices=[4,2]<=[2,4]T(1,0) last_tile_dims={unreduced}}",
        "{devices=[4,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced}}",
        8,
    ),
    "scalars": (
        (),
        "f8E3M4",
        "{devices=[4,4]<=[16] last_tile_dims={unreduced, replicated}}",
        "{devices=[4,4]4,8,10,11,7,9,12,15,0,1,5,14,2,3,6,13 last_tile_dims={unreduced, replicated}}",
        16,
    ),
    "the devices of a tile listed in another order": (
        (2, 12),
        "i32",
        "{devices=[2,1,2]0,2,3,1 last_tile_dims={unreduced}}",
        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={unreduced}}",
        4,
    ),
}


KEPT["some of the sums, on another mesh"] = (
    (2, 12, 4, 6),
    "ui64",
    "{devices=[1,2,1,1,12]<=[2,2,6]T(1,0,2) last_tile_dims={unreduced}}",
    "{devices=[2,1,2,1,6]20,2,1,7,4,6,23,16,13,14,11,0,19,3,9,8,10,5,18,22,15,21,17,12 last_tile_dims={unreduced}}",
    24,
)


@pytest.mark.parametrize("name", [*FOUND, *KEPT])
def test_laws_hold(name: str) -> None:
    shape, element, source, target, devices = (FOUND | KEPT)[name]
    problem = Problem(0, shape, element, Side.of(source), Side.of(target), devices)
    plans, _ = laws.planned(problem)
    assert "best" in plans
    assert "rink" in plans or name in KEPT
    laws.evaluated(problem, plans)


def test_axes_of_two_meshes_that_share_a_name_are_not_one() -> None:
    """Once a recursion without end: in text both meshes call their first axis axis_0, one of 24 devices, one of 6."""
    order = "3,12,20,23,0,13,14,21,1,2,6,8,4,16,18,19,9,10,11,22,5,7,15,17"
    target = f"{{devices=[6,4]{order} last_tile_dims={{unreduced, replicated}}}}"
    with pytest.raises(ShardpassError, match="SP408"):
        plan_redistribution((), "i32", "{unreduced}", target, num_devices=24)
