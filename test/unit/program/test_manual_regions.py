"""Which ops a manual region holds: by data flow, as nothing else marks them after inlining."""

from __future__ import annotations

from typing import Any

from shardpass.ir.annotations import MANUAL, get_text
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import inputs_of, operation
from shardpass.ir.walk import every_op
from shardpass.program.manual_regions import mark_manual, marked_scope, scope_of
from shardpass.sharding import Sharding, parse_sharding

ENTER = (
    '%in = stablehlo.custom_call @SPMDFullToShardShape({0}) {{mhlo.sharding = "{{manual}}"}} : '
    "(tensor<8xf32>) -> tensor<4xf32>"
)
LEAVE = (
    '%out = stablehlo.custom_call @SPMDShardToFullShape({0}) {{mhlo.sharding = "{{devices=[2]<=[2]}}"}} : '
    "(tensor<4xf32>) -> tensor<8xf32>"
)


def marked(body: str, results: str = "%out", types: str = "tensor<8xf32>") -> Any:
    """main(%x: tensor<8xf32>, %y: tensor<4xf32>) with ``body``, after marking."""
    text = f"""func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> ({types}) {{
{body}
return {results} : {types}
}}"""
    module = parse_module(text)
    with module.context:
        mark_manual(module.body.operations[0])
        module.operation.verify()
    return module


def manual_ops(module: Any) -> list[str]:
    ops = map(operation, module.body.operations[0].regions[0].blocks[0].operations)
    return [op.name.removeprefix("stablehlo.") for op in ops if get_text(op, "mhlo.sharding") == MANUAL]


def test_without_a_region_nothing_is_marked() -> None:
    assert manual_ops(marked("%out = stablehlo.negate %x : tensor<8xf32>")) == []


def test_what_follows_from_the_entry_is_inside_until_the_exit() -> None:
    module = marked(
        f"""%whole = stablehlo.abs %x : tensor<8xf32>
{ENTER.format("%whole")}
%a = stablehlo.negate %in : tensor<4xf32>
%b = stablehlo.add %a, %in : tensor<4xf32>
{LEAVE.format("%b")}
%after = stablehlo.sine %out : tensor<8xf32>""",
        "%after",
    )
    # the abs before and the sine after are whole-array ops
    assert manual_ops(module) == ["custom_call", "negate", "add"]


def test_what_only_feeds_the_region_is_inside() -> None:
    """A constant, and what is made of it, that nothing outside uses."""
    module = marked(
        f"""{ENTER.format("%x")}
%c = stablehlo.constant dense<1.0> : tensor<f32>
%d = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>
%a = stablehlo.add %in, %d : tensor<4xf32>
{LEAVE.format("%a")}"""
    )
    assert manual_ops(module) == ["custom_call", "constant", "broadcast_in_dim", "add"]


def test_what_both_sides_use_is_copied() -> None:
    module = marked(
        f"""%c = stablehlo.constant dense<1.0> : tensor<4xf32>
{ENTER.format("%x")}
%a = stablehlo.add %in, %c : tensor<4xf32>
{LEAVE.format("%a")}
%b = stablehlo.multiply %y, %c : tensor<4xf32>""",
        "%out, %b",
        "tensor<8xf32>, tensor<4xf32>",
    )
    assert sorted(manual_ops(module)) == ["add", "constant", "custom_call"]
    text = str(module)
    assert text.count("stablehlo.constant") == 2


def test_an_entrys_operand_is_outside() -> None:
    """The constraint before a region, and all that leads to it, are of the whole program."""
    module = marked(
        f"""%w = stablehlo.abs %x : tensor<8xf32>
%s = stablehlo.custom_call @Sharding(%w) {{mhlo.sharding = "{{devices=[2]<=[2]}}"}} : (tensor<8xf32>) -> tensor<8xf32>
{ENTER.format("%s")}
{LEAVE.format("%in")}"""
    )
    assert manual_ops(module) == ["custom_call"]
    assert '@Sharding(%0) {mhlo.sharding = "{devices=[2]<=[2]}"}' in str(module)


def test_values_that_a_region_takes_from_outside_are_inputs() -> None:
    text = """func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    %2 = stablehlo.add %1, %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    module = parse_module(text)
    with module.context:
        block = module.body.operations[0].regions[0].blocks[0]
        found = inputs_of(operation(block.operations[0]))
        assert found[0] == block.arguments[0]
        assert set(found[1:]) == {block.arguments[1]}


def names_below(op: Any, manual: bool) -> list[str]:
    """The ops of the regions of ``op`` that are marked, or that are not; without what ends a block."""
    inner = [op for op in every_op(op) if op.name not in ("stablehlo.while", "stablehlo.if", "stablehlo.return")]
    return [op.name.removeprefix("stablehlo.") for op in inner if (get_text(op, "mhlo.sharding") == MANUAL) == manual]


# the region stands in a branch; the constant before it, and what is made of the constant, in the block around
IN_A_BRANCH = f"""%p = stablehlo.constant dense<true> : tensor<i1>
%c = stablehlo.constant dense<1.0> : tensor<f32>
%d = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>
%if = "stablehlo.if"(%p) ({{
  {ENTER.format("%x")}
  %a = stablehlo.add %in, %d : tensor<4xf32>
  {LEAVE.format("%a")}
  stablehlo.return %out : tensor<8xf32>
}}, {{
  %n = stablehlo.negate %x : tensor<8xf32>
  stablehlo.return %n : tensor<8xf32>
}}) : (tensor<i1>) -> tensor<8xf32>
%after = stablehlo.multiply %y, %d : tensor<4xf32>"""


def test_a_region_in_a_branch_gets_copies_of_what_it_captures() -> None:
    module = marked(IN_A_BRANCH, "%if, %after", "tensor<8xf32>, tensor<4xf32>")
    assert manual_ops(module) == []
    (branch,) = [op for op in every_op(module.operation) if op.name == "stablehlo.if"]
    assert sorted(names_below(branch, manual=True)) == ["add", "broadcast_in_dim", "constant", "custom_call"]
    assert sorted(names_below(branch, manual=False)) == ["custom_call", "negate"]  # the exit and the other branch
    text = str(module)
    assert text.count("stablehlo.constant dense<1.0") + text.count('{manual}"} dense<1.0') == 2


# a loop in a region, made of constants alone, and what it captures
LOOP_INSIDE = f"""{ENTER.format("%x")}
%zero = stablehlo.constant dense<0> : tensor<i32>
%c = stablehlo.constant dense<2.0> : tensor<4xf32>
%w:2 = stablehlo.while(%i = %zero, %s = %c) : tensor<i32>, tensor<4xf32>
  cond {{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.multiply %s, %c : tensor<4xf32>
    stablehlo.return %next, %t : tensor<i32>, tensor<4xf32>
  }}
%a = stablehlo.add %in, %w#1 : tensor<4xf32>
{LEAVE.format("%a")}"""


def test_all_of_a_loop_in_a_region_is_inside() -> None:
    module = marked(LOOP_INSIDE)
    assert manual_ops(module) == ["custom_call", "constant", "constant", "while", "add"]
    (loop,) = [op for op in every_op(module.operation) if op.name == "stablehlo.while"]
    assert names_below(loop, manual=False) == []


SOME = '"{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}"'
BOTH = '"{manual}"'
# over the first axis of two, then in a loop over the second too
NESTED = f"""%in = stablehlo.custom_call @SPMDFullToShardShape(%x) {{mhlo.sharding = {SOME}}}
    : (tensor<8xf32>) -> tensor<4xf32>
%zero = stablehlo.constant dense<0> : tensor<i32>
%c = stablehlo.constant dense<2.0> : tensor<f32>
%w:2 = stablehlo.while(%i = %zero, %s = %in) : tensor<i32>, tensor<4xf32>
  cond {{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.custom_call @SPMDFullToShardShape(%s) {{mhlo.sharding = {BOTH}}} : (tensor<4xf32>) -> tensor<2xf32>
    %d = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %u = stablehlo.multiply %t, %d : tensor<2xf32>
    %v = stablehlo.custom_call @SPMDShardToFullShape(%u) {{mhlo.sharding = {SOME}}} : (tensor<2xf32>) -> tensor<4xf32>
    stablehlo.return %next, %v : tensor<i32>, tensor<4xf32>
  }}
%out = stablehlo.custom_call @SPMDShardToFullShape(%w#1)
    {{mhlo.sharding = "{{devices=[2,2]<=[4] last_tile_dim_replicate}}"}} : (tensor<4xf32>) -> tensor<8xf32>"""


def test_a_region_in_a_loop_of_a_region_has_a_scope_of_its_own() -> None:
    module = marked(NESTED)
    (loop,) = [op for op in every_op(module.operation) if op.name == "stablehlo.while"]
    assert sorted(names_below(loop, manual=True)) == ["broadcast_in_dim", "constant", "custom_call", "multiply"]
    rest = [op for op in every_op(loop) if get_text(op, "mhlo.sharding") != MANUAL and op.name != "stablehlo.return"]
    outer = parse_sharding(SOME.strip('"'))
    assert isinstance(outer, Sharding)
    assert {marked_scope(op) for op in rest} == {scope_of(outer)}
