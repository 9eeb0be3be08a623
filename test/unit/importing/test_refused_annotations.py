"""What is read but cannot hold: groups of different shapes, strays of manual regions, groups of replicas."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.diagnostics import Diagnostic, ShardpassError

MESH = 'sdy.mesh @m = <["a"=2, "b"=2]>\n'


def refused(text: str) -> list[Diagnostic]:
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(text, "import")
    return list(caught.value.diagnostics)


def only(text: str) -> tuple[str, int, str]:
    """Code, line and message of the one thing that is wrong with ``text``."""
    (found,) = refused(text)
    assert found.remedy
    return found.code, found.place.line, found.message


def test_members_of_a_group_have_one_shape() -> None:
    code, line, message = only(
        MESH
        + """func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, %y: tensor<4x8xf32>) {
  sdy.sharding_group %x group_id=7 : tensor<8x4xf32>
  sdy.sharding_group %y group_id=7 : tensor<4x8xf32>
  return
}"""
    )
    assert (code, line) == ("SP230", 4)
    assert "group 7 is tensor<4x8xf32>" in message
    assert "first member is tensor<8x4xf32>" in message


def test_members_of_a_group_of_xlas_words_have_one_shape() -> None:
    text = """func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %y: tensor<4xf32>)
    -> tensor<8xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{unknown shard_as 1}"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{unknown shard_like 1}"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<8xf32>
}"""
    assert only(text)[:2] == ("SP230", 4)


def test_members_of_a_group_of_one_shape_may_have_other_elements() -> None:
    text = """func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %y: tensor<8xi8>)
    -> tensor<8xi8> {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{unknown shard_as 1}"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{unknown shard_as 1}"} : (tensor<8xi8>) -> tensor<8xi8>
  %2 = stablehlo.negate %1 : tensor<8xi8>
  return %2 : tensor<8xi8>
}"""
    module = str(shardpass.run_pipeline(text, "partition"))
    assert "stablehlo.negate %arg1 : tensor<4xi8>" in module


def test_a_group_does_not_cross_the_border_of_a_manual_region() -> None:
    code, line, message = only(
        MESH
        + """func.func @main(%x: tensor<8x4xf32>, %y: tensor<4x4xf32>) -> tensor<8x4xf32> {
  sdy.sharding_group %y group_id=0 : tensor<4x4xf32>
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>] manual_axes={"a"}
      (%t: tensor<4x4xf32>) {
    sdy.sharding_group %t group_id=0 : tensor<4x4xf32>
    %1 = stablehlo.negate %t : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""
    )
    assert (code, line) == ("SP230", 6)
    assert message.endswith("outside of manual regions")


COLLECTIVE = """module attributes {{mhlo.num_partitions = 2 : i32}} {{
func.func @main(%x: tensor<8x4xf32> {{mhlo.sharding = "{{devices=[2,1]<=[2]}}"}}) -> tensor<{rows}x4xf32> {{
  %0 = "stablehlo.{op}"(%x) {region} {{{attributes}}} : (tensor<8x4xf32>) -> tensor<{rows}x4xf32>
  return %0 : tensor<{rows}x4xf32>
}}
}}"""
ADD = (
    "({^bb0(%p: tensor<f32>, %q: tensor<f32>): %r = stablehlo.add %p, %q : tensor<f32> "
    '"stablehlo.return"(%r) : (tensor<f32>) -> ()})'
)
PAIRS = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
OF_REPLICAS = [
    ("all_reduce", ADD, GROUPS, 8),
    ("reduce_scatter", ADD, f"scatter_dimension = 0 : i64, {GROUPS}", 4),
    ("collective_permute", "", PAIRS, 8),
    ("all_gather", "", f"all_gather_dim = 0 : i64, {GROUPS}", 16),
    ("collective_broadcast", "", GROUPS, 8),
    ("all_to_all", "", f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUPS}", 8),
]


@pytest.mark.parametrize(("op", "region", "attributes", "rows"), OF_REPLICAS, ids=lambda v: str(v)[:12])
def test_groups_of_replicas_that_there_are_not(op: str, region: str, attributes: str, rows: int) -> None:
    code, line, message = only(COLLECTIVE.format(op=op, region=region, attributes=attributes, rows=rows))
    assert (code, line) == ("SP232", 3)
    assert f"stablehlo.{op} has no channel" in message
    assert "replica 1" in message


def test_a_group_of_the_one_replica_is_harmless() -> None:
    text = COLLECTIVE.format(
        op="all_reduce", region=ADD, attributes="replica_groups = dense<0> : tensor<1x1xi64>", rows=8
    )
    assert "all_reduce" in str(shardpass.run_pipeline(text, "import"))


@pytest.mark.parametrize("note", ["RotateRight", "MultiRotate", "Wrap"])
def test_notes_of_xlas_own_partitioner(note: str) -> None:
    code, line, message = only(
        """func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @_SPMDInternalOp_NOTE(%x) {backend_config = "dimension=0,amount=1"}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""".replace("NOTE", note)
    )
    assert (code, line) == ("SP231", 2)
    assert f"@_SPMDInternalOp_{note}" in message


def test_a_mark_on_an_op_that_takes_a_whole_array() -> None:
    code, line, message = only(
        """func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = stablehlo.negate %x {mhlo.sharding = "{manual}"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    )
    assert (code, line) == ("SP233", 2)
    assert "its operand 0 is a whole array" in message


def test_a_mark_on_an_op_that_takes_a_whole_array_in_a_branch() -> None:
    code, line, message = only(
        """func.func @main(%p: tensor<i1>, %x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x {mhlo.sharding = "{manual}"} : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    )
    assert (code, line) == ("SP233", 3)
    assert "its operand 0 is a whole array" in message


def test_a_mark_on_a_constant_that_is_used_as_a_whole_array() -> None:
    code, line, message = only(
        """module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main() -> tensor<8xf32> {
  %0 = stablehlo.constant {mhlo.sharding = "{manual}"} dense<1.0> : tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
}"""
    )
    assert (code, line) == ("SP233", 3)
    assert "stablehlo.negate takes" in message


AXES = (
    MESH
    + """func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>}) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {"b"}]>] out_shardings=[<@m, [{"a"}, {"b"}]>]
      manual_axes={"a","b"} (%t: tensor<4x2xf32>) {
    %1 = "stablehlo.collective_broadcast"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [AXES]>}
        : (tensor<4x2xf32>) -> tensor<4x2xf32>
    sdy.return %1 : tensor<4x2xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""
)


@pytest.mark.parametrize(("axes", "code"), [(["c"], "SP021"), (["b", "b"], "SP023"), (["b", "a", "b"], "SP023")])
def test_replica_groups_of_wrong_axes_have_a_place(axes: list[str], code: str) -> None:
    text = AXES.replace("AXES", ", ".join(f'#stablehlo.axis_ref<name = "{axis}">' for axis in axes))
    (found,) = refused(text)
    assert (found.code, found.place.line) == ("SP202", 5)
    assert [n.code for n in found.notes] == [code]


@pytest.mark.parametrize("count", ["0 : i32", "-1 : i32", "2 : i32", '"one"'])
def test_a_program_of_other_than_one_replica(count: str) -> None:
    text = f"module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = {count}}} {{"
    text += " func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> } }"
    code, line, message = only(text)
    assert (code, line) == ("SP235", 1)
    assert f"mhlo.num_replicas is {count}" in message
