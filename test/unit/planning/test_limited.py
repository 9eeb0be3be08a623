"""The cheapest shardings within a limit of memory, beside arithmetic and XLA's own account."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.pipeline.plan import plan_module

KIB = 2**10
STEP = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<4096x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %w: tensor<256x256xf32>, %m: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32>
    %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<256x256xf32>
    %n = stablehlo.add %m, %g : tensor<256x256xf32>
    %v = stablehlo.subtract %w, %n : tensor<256x256xf32>
    return %v, %n : tensor<256x256xf32>, tensor<256x256xf32>
  }
}"""  # noqa: E501  IR is not wrapped
TILE = 4096 // 8 * 256 * 4  # of x, and of y
WEIGHT = 256 * 256 * 4


def with_limit(text: str) -> object:
    return shardpass.run_pipeline(STEP, f"propagate{{fit={text}}}")


def test_a_limit_that_the_cheapest_keeps_changes_nothing() -> None:
    assert str(with_limit("1GiB")) == str(shardpass.run_pipeline(STEP, "propagate"))


def test_a_plan_keeps_the_limit_and_pays_for_it() -> None:
    free = plan_module(STEP)
    limit = free.alive.peak - WEIGHT // 2
    found = plan_module(with_limit(str(limit)))
    assert found.alive.peak <= limit < free.alive.peak
    assert found.bytes_received > free.bytes_received  # the weight is gathered, where it was held
    # x, y and the gradient are alive together, whatever is split
    assert found.alive.peak >= 2 * TILE + WEIGHT


def test_xla_counts_no_more_for_arguments_and_results() -> None:
    free, fit = (
        shardpass.compile(shardpass.run_pipeline(STEP, f"partition{{fit={text}}}")).memory_stats()
        for text in ("none", "1500KiB")
    )
    assert free.argument_size_in_bytes - fit.argument_size_in_bytes == WEIGHT - WEIGHT // 8


@pytest.mark.parametrize(("text", "effort"), [("1MiB", 1), ("1500KiB", 0)])
def test_what_cannot_be_kept_is_an_error_with_the_least_found(text: str, effort: int) -> None:
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(STEP, f"propagate{{fit={text} effort={effort}}}")
    (found,) = caught.value.diagnostics
    assert found.code == "SP804"
    least = int(found.remedy.split("at least ")[1].split()[0])
    assert least > 1024 * KIB
    if effort:  # what is said to be the least can be had
        assert plan_module(with_limit(str(least))).alive.peak <= least
