"""Changing the order of a block: what each trial promises, held to a plain recount of the block."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support import daily

from shardpass.ir.context import parse_module
from shardpass.ir.effects import may_be_moved
from shardpass.ir.order import Order, bytes_of
from shardpass.ir.tensors import operation


def block_of(body: str, arguments: str = "%x: tensor<4xf32>") -> tuple[Any, Any]:
    """The module, which must be kept, and main's block."""
    module = parse_module(f"func.func @main({arguments}) {{\n{body}\nreturn\n}}")
    return module, operation(module.body.operations[0]).regions[0].blocks[0]


def negate(name: str, of: str, size: int = 4) -> str:
    return f"%{name} = stablehlo.negate %{of} : tensor<{size}xf32>"


def peak_of(block: Any) -> int:
    """The most bytes alive at once, op by op: every result from its op to its last user."""
    ops = list(block.operations)
    last = {r: at for at, op in enumerate(ops) for r in op.results}
    last.update({v: at for at, op in enumerate(ops) for v in op.operands})
    made = {r: at for at, op in enumerate(ops) for r in op.results}
    alive = [sum(bytes_of(r.type) for r, at in made.items() if at <= k <= last[r]) for k in range(len(ops))]
    return max(alive)


def test_what_the_other_needs_moves_up():
    module, block = block_of("\n".join([negate("a", "x"), negate("b", "x"), negate("c", "b"), negate("d", "a")]))
    order = Order(block)
    assert order.bring_together(0, 2, 0)
    order.apply()
    assert module.operation.verify()
    assert [order.ops[i] for i in (1, 0, 2, 3)] == [op.operation for op in list(block.operations)[:-1]]


def test_one_that_needs_the_other_stays():
    _, block = block_of("\n".join([negate("a", "x"), negate("b", "a"), negate("c", "b")]))
    order = Order(block)
    assert not order.bring_together(0, 2, 0)
    assert order.order == [0, 1, 2, 3]


def test_groups_that_would_need_one_another_in_a_circle():
    """a < c and d < b: (a, d) can be together, then (b, c) cannot."""
    lines = [negate("a", "x"), negate("c", "a"), negate("d", "x"), negate("b", "d")]
    _, block = block_of("\n".join(lines))
    order = Order(block)
    assert order.bring_together(1, 2, 0)  # c and d
    assert not order.bring_together(0, 3, 0)  # a before c, so before d, so before b: b and a cannot be side by side


@pytest.mark.parametrize("effect", [True, False])
def test_ops_move_out_of_the_way_of_one_with_effects(effect):
    call = "%b = stablehlo.custom_call @f(%a) {has_side_effect = " + str(effect).lower() + "}"
    body = [negate("a", "x"), f"{call} : (tensor<4xf32>) -> tensor<4xf32>", negate("c", "x"), negate("d", "c")]
    _, block = block_of("\n".join(body))
    order = Order(block, slack=16)
    assert may_be_moved(order.ops[1]) is not effect
    assert order.bring_together(0, 3, 0)
    assert order.order.index(2) < order.order.index(0)  # c is made before a, and the call stays


def test_ops_with_effects_stay_in_their_order():
    call = "%{0} = stablehlo.custom_call @f(%{1}) {{has_side_effect = true}} : (tensor<4xf32>) -> tensor<4xf32>"
    body = [negate("a", "x"), call.format("b", "a"), call.format("c", "x"), negate("d", "c")]
    _, block = block_of("\n".join(body))
    assert not Order(block).bring_together(0, 3, 0)


def test_control_flow_stays_and_its_body_is_counted():
    loop = """%l = stablehlo.while(%i = %x) : tensor<4xf32>
      cond { %t = stablehlo.constant dense<true> : tensor<i1>
             stablehlo.return %t : tensor<i1> }
      do { %big = stablehlo.concatenate %i, %i, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
           %s = stablehlo.slice %big [0:4] : (tensor<8xf32>) -> tensor<4xf32>
           stablehlo.return %s : tensor<4xf32> }"""
    _, block = block_of(loop)
    order = Order(block)
    assert not order.pure[0]
    assert order.peak == 16 + 32  # the result, and inside what is concatenated; what the body returns is the result's


def test_the_peak_is_that_of_a_plain_recount():
    lines = [negate("a", "x"), negate("b", "a"), "%c = stablehlo.add %a, %b : tensor<4xf32>", negate("d", "c")]
    _, block = block_of("\n".join(lines))
    assert Order(block).peak == peak_of(block) == 48


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_random_blocks(seed):
    """Whatever is tried: the block stays valid, groups are side by side, the peak is not exceeded."""
    rng = np.random.default_rng(seed)
    lines, sizes = [], {"x": 4}
    for k in range(int(rng.integers(4, 24))):
        have = list(sizes)
        one, other = (have[-min(int(rng.geometric(0.3)), len(have))] for _ in range(2))
        if rng.integers(3) and sizes[one] == sizes[other]:
            lines.append(f"%v{k} = stablehlo.add %{one}, %{other} : tensor<{sizes[one]}xf32>")
            sizes[f"v{k}"] = sizes[one]
        else:
            a, b = sizes[one], sizes[other]
            kinds = f"(tensor<{a}xf32>, tensor<{b}xf32>) -> tensor<{a + b}xf32>"
            lines.append(f"%c{k} = stablehlo.concatenate %{one}, %{other}, dim = 0 : {kinds}")
            keep = int(rng.integers(1, a + b + 1))
            lines.append(f"%v{k} = stablehlo.slice %c{k} [0:{keep}] : (tensor<{a + b}xf32>) -> tensor<{keep}xf32>")
            sizes[f"v{k}"] = keep
    module, block = block_of("\n".join(lines))
    before, slack = peak_of(block), int(rng.integers(0, 3)) * 16
    order = Order(block, slack)
    assert order.peak == before
    alone = set(range(len(order.ops) - 1))
    for _ in range(20):
        one, other = sorted(int(i) for i in rng.choice(len(order.ops) - 1, 2, replace=False))
        if other in alone and order.place[one] < order.place[other] and order.bring_together(one, other, 0):
            alone -= {one, other}
    order.apply()
    assert module.operation.verify()
    assert [order.ops[i] for i in order.order] == [op.operation for op in block.operations]
    for group in order.group:
        assert all(order.place[b] == order.place[a] + 1 for a, b in pairwise(group))
    assert peak_of(block) <= before + slack
    recount = Order(block)
    assert order.entering == recount.entering
