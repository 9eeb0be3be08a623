"""Which results follow from what the user fixed."""

from __future__ import annotations

import pytest

import shardpass

PROGRAM = """
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=2,'y'=2]"} {
  func.func @main(%a: tensor<64x64xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<64x64xf32> {
    %c = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
        : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %0 = BODY
    return %0 : tensor<64x64xf32>
  }
}
"""
BOTH, ROWS = "{devices=[2,2]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
COLUMNS = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"
TRANSPOSED = "stablehlo.transpose %c, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>"


def result(body: str, options: str) -> str:
    text = PROGRAM.replace("BODY", body)
    module = shardpass.run_pipeline(text, f"shardpass-import,shardpass-propagate{{{options}}}")
    (head,) = (line for line in str(module).splitlines() if "@main" in line)
    return head.rpartition('mhlo.sharding = "')[2].partition('"')[0]


@pytest.mark.parametrize(("body", "fixed"), [("stablehlo.negate %c : tensor<64x64xf32>", ROWS), (TRANSPOSED, COLUMNS)])
def test_a_search_leaves_what_follows_from_a_constraint(body, fixed):
    """The gather that the constraint costs is saved where it does not hold and the result may be split further."""
    assert result(body, "effort=0") == fixed
    assert result(body, "effort=1 settle-results=true") == fixed
    assert result(body, "effort=1 constraints=free") != fixed


def test_a_product_follows_from_neither_operand():
    """Its rows are those of one, its columns those of the other, so a search may choose."""
    product = "stablehlo.dot_general %c, %a, contracting_dims = [1] x [0] : "
    product += "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>"
    assert result(product, "effort=1 settle-results=true") == result(product, "effort=1")
