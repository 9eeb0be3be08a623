"""Constraints hold: what they make is there as the user says, and its users start from that copy."""

from __future__ import annotations

import pytest
from support.differential import check_text

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.collectives import collectives
from shardpass.pipeline.plan import plan_module
from shardpass.planning.plan.plan import ProgramPlan

# Rink et al., "Memory-efficient array redistribution", Listing 3: x @ w1 in columns, redistributed to rows, @ w2
LISTING_3 = """
module attributes {mhlo.num_partitions = 32 : i32, shardpass.mesh = "mesh['devs'=32]"} {
  func.func @main(%x: tensor<32x1024xf32> {mhlo.sharding = "{replicated}"},
                  %w1: tensor<1024x2048xf32> {mhlo.sharding = "{devices=[1,32]<=[32]}"},
                  %w2: tensor<2048x256xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<32x256xf32> {mhlo.sharding = "{devices=[32,1]<=[32]}"}) {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] {mhlo.sharding = "{devices=[1,32]<=[32]}"}
        : (tensor<32x1024xf32>, tensor<1024x2048xf32>) -> tensor<32x2048xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[32,1]<=[32]}"}
        : (tensor<32x2048xf32>) -> tensor<32x2048xf32>
    %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0] {mhlo.sharding = "{devices=[32,1]<=[32]}"}
        : (tensor<32x2048xf32>, tensor<2048x256xf32>) -> tensor<32x256xf32>
    return %2 : tensor<32x256xf32>
  }
}
"""
# the constraint is of x's own rows at first, and the sum wants columns
COLUMNS_FIRST = """
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[4,1]<=[4]}"}
        : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.negate %0 : tensor<64x64xf32>
    return %1 : tensor<64x64xf32>
  }
}
"""
# rows that do not divide: the op says rows over x, whatever is around it
OWN_ANNOTATION = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%x: tensor<4097x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<4097x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.exponential %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
      : tensor<4097x16xf32>
  return %0 : tensor<4097x16xf32>
}
"""


def sent(text: str, pipeline: str) -> list[tuple[str, int]]:
    with collect():
        return [(use.kind, use.bytes_received) for use in collectives(shardpass.run_pipeline(text, pipeline))]


def plan_of(text: str, constraints: str) -> ProgramPlan:
    return plan_module(text, constraints=constraints)


@pytest.mark.parametrize("effort", [0, 1])
def test_listing_3_has_its_redistribution(effort: int) -> None:
    """A tile of 32 x 64 floats, of which 31/32 go to others."""
    assert ("all_to_all", 32 * 64 * 4 * 31 // 32) in sent(LISTING_3, f"partition{{effort={effort}}}")


def test_an_array_goes_to_where_the_constraint_says_and_back() -> None:
    """The tiles are 64 x 16 floats, of which 3/4 move each time; where the constraint is a wish nothing moves."""
    assert sent(COLUMNS_FIRST, "partition") == [("all_to_all", 64 * 16 * 4 * 3 // 4)] * 2
    assert sent(COLUMNS_FIRST, "partition{constraints=free}") == []
    assert plan_of(COLUMNS_FIRST, "exact").bytes_received == 2 * 64 * 16 * 4 * 3 // 4
    assert plan_of(COLUMNS_FIRST, "free").bytes_received == 0


def test_what_an_annotated_op_makes_is_there_as_annotated() -> None:
    """513 rows of 16 on each of 8 devices: 2 columns of all rows go there and back."""
    assert [kind for kind, _ in sent(OWN_ANNOTATION, "partition")] == ["all_to_all", "all_to_all"]
    assert sent(OWN_ANNOTATION, "partition{constraints=free}") == []


@pytest.mark.parametrize("text", [COLUMNS_FIRST, OWN_ANNOTATION], ids=["constraint", "annotated op"])
@pytest.mark.parametrize("constraints", ["exact", "free"])
def test_the_program_computes_the_same(text: str, constraints: str) -> None:
    check_text(text, pipeline=f"partition{{constraints={constraints}}}")


@pytest.mark.parametrize("constraints", ["exact", "free"])
def test_the_text_says_whether_constraints_hold(constraints: str) -> None:
    """Passes that are run one by one, from text to text, build what one pipeline does."""
    passes = f"shardpass-import,shardpass-propagate{{constraints={constraints}}}"
    for text in (COLUMNS_FIRST, OWN_ANNOTATION):
        with collect():
            between = str(shardpass.run_pipeline(text, passes))
            apart = shardpass.run_pipeline(between, "shardpass-partition")
            together = shardpass.run_pipeline(text, f"{passes},shardpass-partition")
        assert str(apart) == str(together)


def test_a_value_that_constraints_does_not_take_is_refused() -> None:
    with pytest.raises(ShardpassError) as raised:
        shardpass.run_pipeline(COLUMNS_FIRST, "propagate{constraints=maybe}")
    (found,) = raised.value.diagnostics
    assert found.code == "SP107"
    assert "exact or free" in found.message


def test_a_constraint_that_costs_is_a_remark() -> None:
    """At its line: what moves to the constraint, and what the program would receive less, there and back."""
    there = 64 * 16 * 4 * 3 // 4
    with collect() as found:
        shardpass.run_pipeline(COLUMNS_FIRST, "shardpass-import,shardpass-propagate,shardpass-check{remarks=true}")
    (remark,) = [one for one in found if one.code == "SP246"]
    assert COLUMNS_FIRST.splitlines()[remark.place.line - 1].lstrip().startswith("%0 = ")
    assert f"receives {there} bytes to reshard" in remark.message
    assert f"{2 * there} bytes less" in remark.message


def test_a_constraint_that_costs_no_more_than_it_must_is_no_remark() -> None:
    rows = COLUMNS_FIRST.replace("[1,4]", "[4,1]")
    with collect() as found:
        shardpass.run_pipeline(rows, "shardpass-import,shardpass-propagate,shardpass-check{remarks=true}")
    assert [one for one in found if one.code == "SP246"] == []


def test_what_propagation_wrote_is_no_constraint() -> None:
    """A pipe of two commands is one pipeline: the marks are those of the first import."""
    text = """func.func @main(%x: tensor<64x32xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %y: tensor<32x32xf32>) -> tensor<64x32xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
      %1 = stablehlo.exponential %0 {mhlo.sharding = "{devices=[1,4]<=[4]}"} : tensor<64x32xf32>
      return %1 : tensor<64x32xf32>
    }"""  # noqa: E501  IR is not wrapped
    propagated = str(shardpass.run_pipeline(text, "propagate"))
    assert str(shardpass.run_pipeline(propagated, "import")).count("shardpass.pinned") == 1
    assert str(shardpass.run_pipeline(propagated, "partition")) == str(shardpass.run_pipeline(text, "partition"))
