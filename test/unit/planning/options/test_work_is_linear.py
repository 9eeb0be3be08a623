"""Propagation and planning do work in proportion to what they are given. Work is counted, not timed."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.pipeline.plan import plan_module
from shardpass.planning.options import choose
from shardpass.planning.price.prices import Prices
from shardpass.propagation import engine, joins

ROWS = '{mhlo.sharding = "{devices=[2,1]<=[2]}"}'


def barrier(count: int) -> str:
    types = ", ".join(["tensor<8x4xf32>"] * count)
    arguments = ", ".join(f"%a{i}: tensor<8x4xf32> {ROWS}" for i in range(count))
    values, results = (", ".join(f"{name}{i}" for i in range(count)) for name in ("%a", "%0#"))
    return f"""func.func @main({arguments}) -> ({types}) {{
      %0:{count} = stablehlo.optimization_barrier {values} : {types} return {results} : {types} }}"""


def layers(count: int) -> str:
    """``count`` equal layers: a matmul with weights of its own, and a tanh."""
    arguments = ", ".join(f"%w{i}: tensor<8x8xf32> {ROWS}" for i in range(count))
    body = "\n".join(
        f"""%d{i} = stablehlo.dot_general %t{i}, %w{i}, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
        %t{i + 1} = stablehlo.tanh %d{i} : tensor<8x8xf32>"""
        for i in range(count)
    )
    return f"""func.func @main(%t0: tensor<8x8xf32> {ROWS}, {arguments}) -> tensor<8x8xf32> {{
      {body} return %t{count} : tensor<8x8xf32> }}"""


def nested(depth: int) -> str:
    text = "%r = stablehlo.negate %x : tensor<8x4xf32> stablehlo.return %r : tensor<8x4xf32>"
    for _ in range(depth):
        text = f"""%r = "stablehlo.case"(%c) ({{ {text} }}) : (tensor<i32>) -> tensor<8x4xf32>
          stablehlo.return %r : tensor<8x4xf32>"""
    text = text.rpartition("stablehlo.return")
    main = f"@main(%x: tensor<8x4xf32> {ROWS}, %c: tensor<i32>) -> tensor<8x4xf32>"
    return f"func.func {main} {{ {text[0]} return {text[2]} }}"


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, text: str) -> int:
    """How often ``owner.name`` is called while ``text`` is planned, with nothing known of programs before it."""
    calls = 0
    for kept in (choose._kept_on, joins._kept):
        kept.cache_clear()
    real = getattr(owner, name)

    def count(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        return real(*arguments, **named)

    with monkeypatch.context() as patch, collect():
        patch.setattr(owner, name, count)
        plan_module(text)
    return calls


def test_prices_asked_for_a_barrier_grow_with_its_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (counted(monkeypatch, Prices, "move", barrier(n)) for n in (10, 100))
    assert many <= 11 * few


def test_equal_layers_are_decided_and_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(monkeypatch, choose, "assign", layers(40)) == counted(monkeypatch, choose, "assign", layers(20))
    assert counted(monkeypatch, engine, "join", layers(40)) == counted(monkeypatch, engine, "join", layers(20))


def test_regions_may_nest_deeply() -> None:
    with collect():
        text = str(shardpass.run_pipeline(nested(300), "partition"))
    assert "tensor<4x4xf32>" in text
