"""The parts of an op's plan, of every kind of plan there is."""

from __future__ import annotations

from typing import get_args

import pytest

from shardpass.pipeline.plan import plan_module
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.listed import (
    blocks_of,
    operand_copies,
    operand_steps,
    operands_of,
    results_of,
    steps_of,
    with_parts,
)
from shardpass.planning.price.steps import BorderPlan, ConstraintPlan, LeftOutPlan, OpPlan, UntouchedPlan

ROWS, WHOLE = '"{devices=[2,1]<=[2]}"', '"{replicated}"'
PROGRAMS = {
    "a product, a constraint, and an op that nothing uses": f"""
func.func @main(%x: tensor<8x4xf32> {{mhlo.sharding = {ROWS}}}, %w: tensor<4x4xf32> {{mhlo.sharding = {ROWS}}})
    -> (tensor<8x4xf32> {{mhlo.sharding = {ROWS}}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {{mhlo.sharding = {WHOLE}}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.tanh %1 : tensor<8x4xf32>
  %3 = stablehlo.sine %x : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}}""",
    "a loop, and an op that no rule splits": f"""
func.func @main(%x: tensor<8x4xf32> {{mhlo.sharding = {ROWS}}}) -> tensor<8x4xf32> {{
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<8x4xf32>
  cond {{
    %p = stablehlo.compare NE, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %b = stablehlo.tanh %a : tensor<8x4xf32>
    stablehlo.return %i, %b : tensor<i32>, tensor<8x4xf32>
  }}
  %1 = stablehlo.custom_call @foreign(%0#1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}}""",
    "a manual region": f"""
func.func @main(%x: tensor<8x4xf32> {{mhlo.sharding = {ROWS}}}) -> tensor<8x4xf32> {{
  %0 = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = {ROWS}}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}}
      : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.tanh %1 {{mhlo.sharding = "{{manual}}"}} : tensor<4x4xf32>
  %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{{manual}}"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = {ROWS}}}
      : (tensor<4x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}}""",
}


def planned(name: str) -> ProgramPlan:
    return plan_module("module attributes {mhlo.num_partitions = 2 : i32} {" + PROGRAMS[name] + "}")


def op_plans(plan: ProgramPlan) -> list[OpPlan]:
    return [one for block in blocks_of(plan.body) for one in block.ops]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_of_its_own_parts_is_the_same_plan(name: str) -> None:
    for plan in op_plans(planned(name)):
        assert with_parts(plan, operands_of(plan), results_of(plan)) == plan


def test_these_programs_have_every_kind_of_plan() -> None:
    kinds = {type(plan) for name in PROGRAMS for plan in op_plans(planned(name))}
    assert kinds | {LeftOutPlan} == set(get_args(OpPlan))


def test_the_steps_of_a_program_are_all_that_it_lists() -> None:
    """Every step that the text of a plan shows is among ``steps_of``."""
    count = 0
    for name in PROGRAMS:
        for plan in op_plans(planned(name)):
            text = repr((*operands_of(plan), *results_of(plan), getattr(plan, "steps", ())))
            shown = text.count("Reshard(source=") + text.count("Recompute(op=")
            assert len(list(steps_of(plan))) == shown
            count += shown
    assert count


def test_what_an_op_takes() -> None:
    """One copy for each operand; none of a constraint, which computes nothing; the tile that enters a region."""
    seen = set()
    for name in PROGRAMS:
        for plan in op_plans(planned(name)):
            if isinstance(plan, ConstraintPlan | LeftOutPlan):
                wanted = 0
            elif isinstance(plan, UntouchedPlan):
                wanted = 1 if plan.entering is not None else 0
            else:
                wanted = len(plan.op.operands) if not isinstance(plan, BorderPlan) or plan.operand else 0
            assert len(operand_copies(plan)) == wanted
            seen.add(type(plan))
    assert len(seen) >= 5


def test_an_op_that_goes_keeps_what_was_brought_for_others() -> None:
    plan = op_plans(planned("a product, a constraint, and an op that nothing uses"))[0]
    steps = operand_steps(plan)
    left = LeftOutPlan(plan.op, steps)
    assert operand_steps(left) == steps == tuple(steps_of(left))
    assert operands_of(left) == results_of(left) == operand_copies(left) == ()
    assert with_parts(left, (), ()) == left
