"""Folded programs: what repeats is kept once, and stands for all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from support import daily
from support.programs import read

from shardpass import parse_sharding
from shardpass.cost.machine import IDEAL
from shardpass.planning.plan.cost import costs, price
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.fold import Folded, fold
from shardpass.program.program import Program
from shardpass.propagation.program import Propagated

ROWS = '{mhlo.sharding = "{devices=[2,1]<=[2]}"}'


def layers(count: int) -> str:
    """``x = tanh(x @ w)`` ``count`` times, each with a weight of its own."""
    array = "tensor<8x8xf32>"
    weights = ", ".join(f"%w{i}: {array} {ROWS}" for i in range(count))
    body = "\n".join(
        f"""%d{i} = stablehlo.dot_general %x{i}, %w{i}, contracting_dims = [1] x [0] : ({array}, {array}) -> {array}
        %x{i + 1} = stablehlo.tanh %d{i} : {array}"""
        for i in range(count)
    )
    return f"func.func @main({weights}, %x0: {array} {ROWS}) -> {array} {{ {body} return %x{count} : {array} }}"


def folded(text: str) -> tuple[Program, Folded]:
    program = read(text)
    return program, fold(program, {})


def test_many_layers_fold_to_as_many_ops_as_few() -> None:
    assert folded(layers(40))[1].program.count == folded(layers(20))[1].program.count < 20


@pytest.mark.parametrize("count", [1, 3, 12, 40])
def test_every_op_is_stood_for_by_one_like_it(count: int) -> None:
    program, small = folded(layers(count))
    assert sum(small.times.values()) == program.count
    kept = {op.number: op for op in small.program.body.every_op()}
    for op in program.body.every_op():
        like = kept[small.ops[op.number]]
        assert like.name == op.name
        assert like.operands == tuple(small.of[value] for value in op.operands)
        assert like.results == tuple(small.of[value] for value in op.results)


@pytest.mark.parametrize("count", [3, 12, 40])
def test_the_price_is_that_of_the_whole_program(count: int) -> None:
    program, small = folded(layers(count))
    found = Propagated(small.program, {}).table()
    plan = plan_program(small.program, found, folded=True)
    weighed = sum(costs(plan, clock_of(IDEAL), small).values())
    assert weighed == pytest.approx(price(plan_program(program, small.unfolded(found))))


def test_what_the_user_said_keeps_values_apart() -> None:
    text = layers(12).replace(f"%w5: tensor<8x8xf32> {ROWS}", "%w5: tensor<8x8xf32>")
    program, small = folded(text)
    arguments = program.body.arguments
    assert small.of[arguments[5]] != small.of[arguments[6]]
    assert small.of[arguments[8]] == small.of[arguments[9]]  # far enough from it to be alike


def test_each_operand_of_a_barrier_is_an_op_of_its_own() -> None:
    array = "tensor<8x8xf32>"
    text = f"""func.func @main(%a: {array} {ROWS}, %b: {array}) -> ({array}, {array}) {{
      %0:2 = stablehlo.optimization_barrier %a, %b : {array}, {array}
      return %0#0, %0#1 : {array}, {array} }}"""
    program, small = folded(text)
    parts = [op for op in small.program.body.ops if op.name == "stablehlo.optimization_barrier"]
    assert [len(op.operands) for op in parts] == [1, 1]
    (barrier,) = program.body.ops
    assert {small.parts[op.number] for op in parts} == {barrier.number}


@pytest.mark.parametrize("seed", daily.drawn(range(30), 10))
def test_the_price_is_that_of_the_whole_program_under_any_shardings(seed: int) -> None:
    """A value stands for several, and what one op brings is at hand for those alone that take the same of them."""
    draw = Random(seed)
    program, small = folded(layers(12))
    found = Propagated(small.program, {}).table()
    said = small.program.annotations
    choices = [parse_sharding(f"{{devices=[{tiles}]<=[2]}}") for tiles in ("2,1", "1,2")]
    drawn = {value: one if value in said else draw.choice(choices) for value, one in found.of.items()}
    shardings = replace(found, of=drawn)
    weighed = sum(costs(plan_program(small.program, shardings, folded=True), clock_of(IDEAL), small).values())
    assert weighed == pytest.approx(price(plan_program(program, small.unfolded(shardings))))
