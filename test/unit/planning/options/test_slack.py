"""Slacks of edges: examples by hand, and a count of every op for random programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support import daily

import shardpass
from shardpass.planning.options.slack import Slack, hidden
from shardpass.planning.price.fold import fold
from shardpass.program.table import table_of

PRODUCT = (
    "stablehlo.dot_general {}, {}, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
)


def program(lines: list[str], returned: list[str], arguments: int):
    names = ", ".join(f"%a{number}: tensor<8x8xf32>" for number in range(arguments))
    kinds = ", ".join(["tensor<8x8xf32>"] * len(returned))
    text = f"func.func @main({names}) -> ({kinds}) {{\n" + "\n".join(lines)
    text += f"\nreturn {', '.join(returned)} : {kinds}\n}}"
    module = shardpass.run_pipeline(
        f"module attributes {{mhlo.num_partitions = 8 : i32}} {{\n{text}\n}}", "shardpass-import"
    )
    with module.context:
        return table_of(module, "propagate").program


def test_a_weight_waits_for_nothing_and_an_activation_for_the_layer_before():
    """(x @ u) @ v, of 2 seconds each: v can come beside the first product, u and what is between beside nothing."""
    lines = [f"%0 = {PRODUCT.format('%a0', '%a1')}", f"%1 = {PRODUCT.format('%0', '%a2')}"]
    whole = program(lines, ["%1"], 3)
    slack = Slack(whole, fold(whole, {}), {0: 2.0, 1: 2.0})
    _, u, v = whole.body.arguments
    first, second = whole.body.ops
    assert slack.operand(second.number, v) == pytest.approx([2.0])
    assert slack.operand(first.number, u) is None
    assert slack.operand(second.number, first.results[0]) is None
    assert slack.result(first.number) is None


def test_what_fits_into_the_slack_counts_in_part():
    costs = np.array([1.0, 5.0, np.inf])
    assert hidden(costs, np.array([2.0]), 0.25).tolist() == [0.25, 3.5, np.inf]
    assert hidden(costs, None, 0.25) is costs


@pytest.mark.parametrize("seed", daily.drawn(range(40), 10))
def test_slack_is_the_work_that_is_neither_before_nor_behind(seed):
    rng = random.Random(seed)
    values, lines = ["%a0", "%a1"], []
    for number in range(rng.randint(2, 12)):
        lines.append(f"%{number} = {PRODUCT.format(rng.choice(values), rng.choice(values))}")
        values.append(f"%{number}")
    whole = program(lines, [values[-1]], 2)
    ops = whole.body.ops
    work = {op.number: float(rng.randint(0, 5)) for op in ops}
    folded = fold(whole, {})
    slack = Slack(whole, folded, work)
    makers = {op.results[0]: op for op in ops}

    def before(op):
        return {op.number}.union(*[before(makers[value]) for value in op.operands if value in makers])

    def behind(op):
        return {op.number}.union(*[behind(user) for user in ops if op.results[0] in user.operands])

    def expected(op, value):
        gone = behind(op) | (before(makers[value]) if value in makers else set())
        return sum(seconds for number, seconds in work.items() if number not in gone)

    stands: dict[tuple[int, int], list[float]] = {}
    for op in ops:
        for value in op.operands:
            stands.setdefault((folded.ops[op.number], folded.of[value]), []).append(expected(op, value))
    for (number, value), slacks in stands.items():
        found = slack.operand(number, value)
        if max(slacks) == 0:
            assert found is None
        elif len(slacks) <= 8:
            assert found == pytest.approx(sorted(slacks))
