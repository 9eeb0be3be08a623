"""Halos are decided by the time of the machine that was asked for, and built so."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.cost.chosen import chosen
from shardpass.cost.collective import ALL_GATHER, PERMUTE, Axis, Collective
from shardpass.ir.collectives import collectives
from shardpass.ir.context import parse_module
from shardpass.pipeline.plan import plan_module

MEAN = """module attributes {{mhlo.num_partitions = 16 : i32, shardpass.mesh = "mesh['h'=2,'d'=8]"}} {{
  func.func @main(%x: tensor<{size}xf32> {{mhlo.sharding = "{tiles}"}}) -> (tensor<{size}xf32> {{mhlo.sharding = "{tiles}"}}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %y = "stablehlo.reduce_window"(%x, %zero) <{{window_dimensions = array<i64: 3>, padding = dense<1> : tensor<1x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<{size}xf32>, tensor<f32>) -> tensor<{size}xf32>
    return %y : tensor<{size}xf32>
  }}
}}"""  # noqa: E501  IR is not wrapped
TILES = {
    "d": ("{devices=[8,2]<=[2,8]T(1,0) last_tile_dim_replicate}", Axis(8)),
    "h": ("{devices=[2,8]<=[16] last_tile_dim_replicate}", Axis(2, stride=8)),
}
SIZES = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 24)


@pytest.mark.parametrize("axis", TILES)
@pytest.mark.parametrize("machine", ["ideal", "h100", "mi300x", "v5e"])
def test_the_machine_decides_how_windows_are_brought(machine: str, axis: str) -> None:
    """Of each size: an element from each neighbour, or all from everybody in one collective."""
    tiles, along = TILES[axis]
    on, seen = chosen(machine), set()
    neighbours = min(2, along.size - 1)
    for size in SIZES:
        beside = neighbours * on.seconds(Collective(PERMUTE, (Axis(2, along.stride),), 4))
        gathered = on.seconds(Collective(ALL_GATHER, (along,), 4 * size))
        is_beside = beside + on.kernel <= gathered  # which joins what comes to the tile
        wanted = [PERMUTE] * neighbours if is_beside else [ALL_GATHER]
        text = MEAN.format(size=size, tiles=tiles)
        plan = plan_module(text, machine=machine)
        assert plan.seconds() == pytest.approx(beside if is_beside else gathered)
        built = collectives(parse_module(str(shardpass.run_pipeline(text, f"partition{{machine={machine}}}")), "built"))
        assert [one.kind for one in built] == wanted
        seen.add(wanted[0])
    assert PERMUTE in seen
    # a switch takes two latencies or one; a ring as many hops as a gather has, and a kernel more
    assert (ALL_GATHER in seen) == (machine != "ideal" and (neighbours == 2 or on.kernel > 0))
