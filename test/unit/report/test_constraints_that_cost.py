"""The report names constraints that cost more than they must: place, bytes, and what would be saved."""

from __future__ import annotations

import json

import pytest

import shardpass

# rows, and then columns again, of x that is split by columns: the constraint costs the way there and back
COLUMNS = """module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.negate %0 : tensor<64x64xf32>
    return %1 : tensor<64x64xf32>
  }
}
"""  # noqa: E501  IR is not wrapped
THERE = 64 * 16 * 4 * 3 // 4  # a tile of 64 x 16 floats, of which 3/4 come from others


def test_a_constraint_that_costs_is_in_the_report() -> None:
    report = shardpass.explain(COLUMNS)
    (one,) = report.constraints
    assert (one.place.line, one.spec, one.type) == (4, "P('x')", "f32[64,64]")
    assert (one.bytes, one.saved) == (THERE, 2 * THERE)
    assert report.bytes_received - one.saved == shardpass.explain(COLUMNS, constraints="free").bytes_received
    told = " ".join(str(report).split())
    assert "constraints that cost more than they must: -:4: 3.0 KiB to bring f32[64,64] to P('x') and on" in told
    assert "saves 6.0 KiB if it did not hold" in told
    (row,) = json.loads(report.json())["constraints"]
    assert (row["bytes"], row["saved"]) == (THERE, 2 * THERE)


@pytest.mark.parametrize("free", [False, True], ids=["as x is", "a wish"])
def test_one_that_costs_nothing_more_is_not(free: bool) -> None:
    text = COLUMNS if free else COLUMNS.replace("[4,1]", "[1,4]")
    report = shardpass.explain(text, constraints="free" if free else "exact")
    assert report.constraints == ()
    assert "constraints" not in str(report)
    assert "constraints" not in json.loads(report.json())
