"""What partitioning says of products that are done in turn with collectives, and who takes the marks away again."""

from __future__ import annotations

import re

import pytest

from shardpass import run_pipeline
from shardpass.diagnostics import collect
from shardpass.ir.annotations import IN_TURN, main_of
from shardpass.ir.context import parse_module
from shardpass.partition.matmul_loops.replace import Loops
from shardpass.planning.price.loops import ALL, OFF, LoopTerms
from shardpass.sharding import Mesh

# rows of x are at hand, columns of w are not: each device needs all of w, which is the product's operand 1
PROGRAM = """
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<64x32xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                  %w: tensor<32x16xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"})
      -> (tensor<64x16xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }
}"""
PARTITIONED = "shardpass-import,shardpass-propagate,shardpass-partition{matmul-loops=%s},shardpass-redistribute"
GATHER = """%g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
  replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
  channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}>
  : (tensor<4x3xf32>) -> tensor<8x3xf32>"""
MARKED = """
module attributes {{mhlo.num_partitions = 2 : i32, shardpass.in_turn = 1 : i64}} {{
  func.func @main(%x: tensor<{rows}x3xf32>, %w: tensor<3x5xf32>) -> (tensor<8x5xf32>, tensor<8x5xf32>) {{
    {gather}
    %0 = stablehlo.dot_general %{left}, %w, contracting_dims = [1] x [0] {{shardpass.in_turn = "all_gather 0"}}
        : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    %1 = stablehlo.negate %0 : tensor<8x5xf32>
    %2 = stablehlo.dot_general %{left}, %w, contracting_dims = [1] x [0]
        : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    return %1, %2 : tensor<8x5xf32>, tensor<8x5xf32>
  }}
}}"""


@pytest.mark.parametrize(("which", "marks"), [(ALL, ["1 : i64", '"all_gather 1"']), (OFF, [])])
def test_the_plan_marks_the_product_with_the_collective_and_its_side(which: str, marks: list[str]) -> None:
    module = run_pipeline(PROGRAM, PARTITIONED % which)
    assert re.findall(r'shardpass\.in_turn = ("[^"]*"|\d+ : i64)', str(module)) == marks


def test_the_marks_of_what_is_built_are_gone() -> None:
    module = run_pipeline(PROGRAM, (PARTITIONED % ALL) + f",shardpass-collective-matmul{{matmul-loops={ALL}}}")
    assert IN_TURN not in str(module)
    assert "stablehlo.while" in str(module)


def test_a_mark_whose_collective_is_gone_is_a_remark_and_taken_away() -> None:
    """Another pass took the gather away. The second product has no mark, and no remark."""
    with collect() as found:
        module = run_pipeline(MARKED.format(rows=8, gather="", left="x"), "shardpass-collective-matmul")
    assert IN_TURN not in str(module)
    (remark,) = found
    assert "all_gather" in remark.message
    assert remark.place.line == 5


@pytest.mark.parametrize(
    ("which", "rows", "gather", "left", "changed"),
    [(ALL, 4, GATHER, "g", True), (OFF, 4, GATHER, "g", False), (ALL, 8, "", "x", False)],
)
def test_loops_say_whether_there_was_one(which: str, rows: int, gather: str, left: str, changed: bool) -> None:
    module = parse_module(MARKED.format(rows=rows, gather=gather, left=left))
    with module.context:
        loops = Loops(LoopTerms(which), 1, module, Mesh((("devices", 2),)), planned=False)
        assert loops.build(2) is changed
    assert ("collective_permute" in str(main_of(module))) is changed
