"""The benchmark of memory: one program measured, and the summary by hand."""

from __future__ import annotations

import math

import pytest

from tools.bench.memory import Measured, cells, measure, programs, summary

TEXT = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<64x64xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}"""


def test_one_program() -> None:
    """A tile of 8 KiB goes in and one comes out, transposed: nothing moves between devices, nothing is held beside."""
    found = measure("turned", TEXT)
    assert (found.xla, found.module, found.plan) == (2 * 8192, 2 * 8192, 2 * 8192)


def test_the_summary_by_hand() -> None:
    rows = [Measured("a", 1024, 2048, 1024), Measured("b", 1024, 512, 1024)]
    of_module, of_plan = summary(rows)
    assert "geometric mean 1.000 over 2 programs, off by a factor of 2.00 in the mean" in of_module
    assert of_module.endswith("off by more than 30%: b 0.50 of 1.0 KiB, a 2.00 of 1.0 KiB")
    assert of_plan.endswith("off by more than 30%: none")
    assert cells(rows[0]) == ["a", "1.0", "2.0", "2.00", "1.0", "1.00"]
    assert math.prod(row.ratios[0] for row in rows) == pytest.approx(1)


def test_programs_by_the_beginnings_of_their_names() -> None:
    names = [name for name, _ in programs(["zero1_", "fsdp_mlp_2"])]
    assert "zero1_adam/free" in names
    assert "fsdp_mlp_2_rows/free" in names
    assert all(name.startswith(("zero1_", "fsdp_mlp_2")) for name in names)
