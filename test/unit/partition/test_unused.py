"""What is erased after partitioning, and what stays though nothing uses it."""

from __future__ import annotations

from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.partition.unused import erase_unused

GATHER = """"stablehlo.all_gather"({0}) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<
  handle = {1}, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> {2}
  : (tensor<4xf32>) -> tensor<8xf32>"""
MADE = '{shardpass.cause = "operand 0"}'


def left(body: str) -> str:
    module = parse_module(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} return %x : tensor<4xf32> }}")
    with module.context:
        erase_unused(main_of(module))
    assert module.operation.verify()
    return str(module)


def test_a_chain_goes_from_its_end() -> None:
    text = left(f"%0 = stablehlo.negate %x : tensor<4xf32> %1 = {GATHER.format('%0', 1, MADE)}")
    assert "negate" not in text
    assert "all_gather" not in text


def test_the_users_own_collectives_stay() -> None:
    text = left(f"%0 = stablehlo.negate %x : tensor<4xf32> %1 = {GATHER.format('%0', 1, '')}")
    assert "negate" in text
    assert "all_gather" in text


def test_ops_in_loops_go_and_what_a_loop_uses_stays() -> None:
    text = left(
        """%c = stablehlo.constant dense<0> : tensor<i32> %s = stablehlo.abs %x : tensor<4xf32>
        %0 = stablehlo.while(%i = %c) : tensor<i32>
        cond { %p = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %p : tensor<i1> }
        do { %n = stablehlo.negate %s : tensor<4xf32> %t = stablehlo.tanh %s : tensor<4xf32>
          %u = stablehlo.custom_call @effect(%t) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
          stablehlo.return %i : tensor<i32> }"""
    )
    assert "negate" not in text
    assert "stablehlo.abs" in text
    assert "stablehlo.tanh" in text
    assert "@effect" in text
