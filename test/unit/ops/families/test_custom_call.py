"""Rules of custom calls: by target, by JAX's count of batch dimensions, by the user's own rule; else none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.differential import check_text

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.ops import registry
from shardpass.ops.families import custom_call
from shardpass.ops.splits.factors import Kind, Rule, RuleBuilder

CALL = """
func.func @main(%a: tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8xi32>) {{
  %0:2 = stablehlo.custom_call @{target}(%a) {{{attributes}}}
      : (tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8xi32>)
  return %0#0, %0#1 : tensor<8x4x6xf32>, tensor<8xi32>
}}
"""
RULE = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, j, l], [i]) {i=8, j=4, k=6, l=6}%s, custom>"


@contextmanager
def rule_of(target: str, attributes: str) -> Iterator[Rule | None]:
    module = parse_module(CALL.format(target=target, attributes=attributes))
    with module.context:
        op = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        model = custom_call.custom_call(op)
        yield None if model is None else model.rule


def parallel(rule: Rule | None) -> list[tuple[int, int]]:
    """(operand, dimension) of what can be split."""
    assert rule is not None
    return [
        (index, dim)
        for index, dims in enumerate(rule.operands)
        for dim, factors in enumerate(dims)
        if all(rule.factors[f].kind is Kind.PARALLEL for f in factors)
    ]


@pytest.mark.parametrize(("count", "found"), [(0, []), (1, [(0, 0)])])
def test_leading_dimensions_that_jax_counts(count: int, found: list[tuple[int, int]]) -> None:
    with rule_of("whatever", f'mhlo.frontend_attributes = {{num_batch_dims = "{count}"}}') as rule:
        assert parallel(rule) == found
        if found:
            assert rule.results[0][0] == rule.results[1][0] == rule.operands[0][0]


def test_more_batch_dimensions_than_a_result_has() -> None:
    with rule_of("whatever", 'mhlo.frontend_attributes = {num_batch_dims = "2"}') as rule:
        assert rule is None


@pytest.mark.parametrize(
    ("flags", "found"),
    [("", [(0, 0)]), (" need_replication={i}", []), (" reduction={k}", [(0, 0)]), (" permutation={i}", [])],
)
def test_the_users_own_rule(flags: str, found: list[tuple[int, int]]) -> None:
    """j is not a dimension of the second result, so that would differ from device to device."""
    with rule_of("mine", RULE % flags) as rule:
        assert parallel(rule) == found


@pytest.mark.parametrize("attributes", ["", "has_side_effect = true, " + RULE % ""])
def test_unknown_calls_and_calls_with_side_effects_have_no_rule(attributes: str) -> None:
    with rule_of("unknown", attributes) as rule:
        assert rule is None


def test_a_call_without_results_is_made_whole() -> None:
    """Only an effect can be what it is for."""
    counted = 'mhlo.frontend_attributes = {num_batch_dims = "1"}'
    module = parse_module(
        f"func.func @main(%a: tensor<8xf32>) {{ stablehlo.custom_call @tell(%a) {{{counted}}} : "
        "(tensor<8xf32>) -> () return }"
    )
    with module.context:
        op = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        assert custom_call.custom_call(op) is None


def test_a_target_of_a_third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    def batch(op: Any) -> Rule:
        build = RuleBuilder([3], [3, 1])
        factor = build.factor(8)
        build.operand(0, 0, factor)
        build.result(0, 0, factor)
        build.result(1, 0, factor)
        return build.build()

    registry.table()  # every family: none may come while others stand in for the targets
    monkeypatch.setattr(custom_call, "_targets", {})
    custom_call.define_target("theirs", lambda op: custom_call.LocalCall(batch(op)))
    with rule_of("theirs", "has_side_effect = true") as rule:
        assert parallel(rule) == [(0, 0), (0, 1), (0, 2)]


def test_layouts_stay_and_the_rule_goes() -> None:
    """The tile's call has the layouts of the whole one; a rule with whole sizes would be wrong on it."""
    text = """
func.func @main(%a: tensor<8x4x4xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}) -> tensor<8x4x4xf32> {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8},
      mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
      result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>],
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i]) {i=8, j=4, k=4, l=4, m=4}, custom>}
      : (tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>, tensor<8xi32>)
  return %0#0 : tensor<8x4x4xf32>
}
"""
    with collect():
        local = str(shardpass.run_pipeline(text, "partition"))
    assert "(tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2xi32>)" in local
    assert "result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]" in local
    assert "sharding_rule" not in local


def test_an_unknown_call_is_computed_whole_and_says_so() -> None:
    text = """
func.func @main(%a: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @mystery(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    with collect() as found:
        shardpass.run_pipeline(text, "partition")
    assert "SP301" in [d.code for d in found]


def test_cholesky_by_text_runs() -> None:
    text = """
func.func @main(%a: tensor<6x3x3xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}) -> tensor<6x3x3xf32> {
  %t = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<6x3x3xf32>) -> tensor<6x3x3xf32>
  %p = stablehlo.dot_general %a, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<6x3x3xf32>, tensor<6x3x3xf32>) -> tensor<6x3x3xf32>
  %0 = stablehlo.iota dim = 1 : tensor<6x3x3xf32>
  %1 = stablehlo.iota dim = 2 : tensor<6x3x3xf32>
  %d = stablehlo.compare EQ, %0, %1 : (tensor<6x3x3xf32>, tensor<6x3x3xf32>) -> tensor<6x3x3xi1>
  %c = stablehlo.convert %d : (tensor<6x3x3xi1>) -> tensor<6x3x3xf32>
  %s = stablehlo.add %p, %c : tensor<6x3x3xf32>
  %r = "stablehlo.cholesky"(%s) <{lower = true}> : (tensor<6x3x3xf32>) -> tensor<6x3x3xf32>
  return %r : tensor<6x3x3xf32>
}
"""
    check_text(text)
