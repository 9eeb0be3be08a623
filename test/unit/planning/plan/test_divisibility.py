"""Sizes that devices do not divide are named where they cause redistributions, and not elsewhere."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.cost.machine import IDEAL
from shardpass.planning.plan.divisibility import undivided
from shardpass.planning.plan.planner import plan_program
from shardpass.program.table import table_of
from shardpass.program.validate import dividing


def found(body: str, arguments: dict[str, tuple[str, str]], result: str, mesh: str) -> list[tuple[str, int, int]]:
    """(op, size, count) of each undivided size, with bytes above 0."""
    axes = ", ".join(f'"{name}"={size}' for name, size in (axis.split("=") for axis in mesh.split(",")))
    given = ", ".join(f"%{n}: tensor<{t}> {{sdy.sharding = #sdy.sharding<@m, {s}>}}" for n, (t, s) in arguments.items())
    text = f"""module {{ sdy.mesh @m = <[{axes}]>
      func.func @main({given}) -> {result} {{ {body} }} }}"""
    module = shardpass.run_pipeline(text, "import,shardpass-propagate{effort=0}")
    with module.context:
        table = table_of(module, "check")
        causes = undivided(plan_program(table.program, table.all_shardings(), machine=IDEAL))
    assert all(one.bytes > 0 for one in causes)
    return [(one.op.name if one.op else "", one.size, one.count) for one in causes]


@pytest.mark.parametrize(
    ("size", "count", "near"),
    [(30, 8, (24, 32)), (1, 2, (2,)), (7, 8, (8,)), (9, 4, (8, 12)), (50257, 4, (50256, 50260))],
)
def test_sizes_that_divide(size: int, count: int, near: tuple[int, ...]) -> None:
    assert dividing(size, count) == near
    assert all(n % count == 0 for n in near)


def heads(count: int, features: int, devices: int) -> list[tuple[str, int, int]]:
    """``[4, count*features]``, split by columns, as heads; then products of each head with itself."""
    n = count * features
    body = f"""%0 = stablehlo.reshape %x : (tensor<4x{n}xf32>) -> tensor<4x{count}x{features}xf32>
      %1 = stablehlo.dot_general %0, %0, batching_dims = [1] x [1], contracting_dims = [2] x [2]
        : (tensor<4x{count}x{features}xf32>, tensor<4x{count}x{features}xf32>) -> tensor<{count}x4x4xf32>
      return %1 : tensor<{count}x4x4xf32>"""
    return found(body, {"x": (f"4x{n}xf32", '[{}, {"m"}]')}, f"tensor<{count}x4x4xf32>", f"m={devices}")


@pytest.mark.parametrize(("count", "devices"), [(30, 8), (12, 8), (6, 4), (15, 8), (10, 4)])
def test_heads_that_the_axis_does_not_divide(count: int, devices: int) -> None:
    assert {(size, parts) for _, size, parts in heads(count, 16, devices)} == {(count, devices)}


@pytest.mark.parametrize(("count", "devices"), [(32, 8), (24, 8), (8, 8), (4, 2)])
def test_heads_that_it_divides(count: int, devices: int) -> None:
    assert heads(count, 16, devices) == []


def grouped(queries: int, keys: int, devices: int, *, other: int = 0) -> list[tuple[str, int, int]]:
    """Queries of several heads, keys of fewer, each key repeated. ``other``: the features of keys, if not 16."""
    q, f = queries * 16, other or 16
    k = keys * f
    each = queries // keys
    body = f"""%q0 = stablehlo.reshape %q : (tensor<4x{q}xf32>) -> tensor<4x{queries}x16xf32>
      %k0 = stablehlo.reshape %k : (tensor<4x{k}xf32>) -> tensor<4x{keys}x{f}xf32>
      %k1 = stablehlo.broadcast_in_dim %k0, dims = [0, 1, 3]
        : (tensor<4x{keys}x{f}xf32>) -> tensor<4x{keys}x{each}x{f}xf32>
      %k2 = stablehlo.reshape %k1 : (tensor<4x{keys}x{each}x{f}xf32>) -> tensor<4x{queries}x{f}xf32>
      %1 = stablehlo.dot_general %q0, %k2, batching_dims = [1] x [1], contracting_dims = [0] x [0]
        : (tensor<4x{queries}x16xf32>, tensor<4x{queries}x{f}xf32>) -> tensor<{queries}x16x{f}xf32>
      return %1 : tensor<{queries}x16x{f}xf32>"""
    columns = '[{}, {"m"}]'
    arguments = {"q": (f"4x{q}xf32", columns), "k": (f"4x{k}xf32", columns)}
    return found(body, arguments, f"tensor<{queries}x16x{f}xf32>", f"m={devices}")


def test_one_head_over_two() -> None:
    assert grouped(8, 1, 2) == [("stablehlo.reshape", 1, 2)]


def test_fewer_heads_of_keys_than_devices() -> None:
    assert grouped(16, 2, 8) == [("stablehlo.reshape", 2, 8)]


def test_enough_heads_of_keys() -> None:
    assert grouped(16, 8, 8) == []


def test_a_dimension_of_one_is_a_head_only_beside_heads() -> None:
    """``x[:, None]`` is no head: nothing else cuts columns into parts of 16."""
    body = """%0 = stablehlo.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16xf32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<4x1x16xf32>) -> tensor<4x8x16xf32>
      %2 = sdy.sharding_constraint %1 <@m, [{}, {"m"}, {}]> : tensor<4x8x16xf32>
      %3 = stablehlo.tanh %2 : tensor<4x8x16xf32>
      return %3 : tensor<4x8x16xf32>"""
    assert found(body, {"x": ("4x16xf32", '[{}, {"m"}]')}, "tensor<4x8x16xf32>", "m=2") == []


def test_a_constraint_of_heads_that_do_not_divide() -> None:
    """The reshape keeps 2 of 8 shards, the constraint wants all 8: the sizes of both are 30."""
    body = """%0 = stablehlo.reshape %x : (tensor<4x480xf32>) -> tensor<4x30x16xf32>
      %1 = sdy.sharding_constraint %0 <@m, [{}, {"m"}, {}]> : tensor<4x30x16xf32>
      %2 = stablehlo.tanh %1 : tensor<4x30x16xf32>
      return %2 : tensor<4x30x16xf32>"""
    causes = found(body, {"x": ("4x480xf32", '[{}, {"m"}]')}, "tensor<4x30x16xf32>", "m=8")
    assert {(size, count) for _, size, count in causes} == {(30, 8)}


def test_a_constraint_that_pads() -> None:
    """Rows to columns is sent for 30 columns as for 32, so the constraint is no cause (its padding is SP216).

    The result is one: what the program returns is split evenly, so it has 2 of the 8 shards.
    """
    body = """%0 = sdy.sharding_constraint %x <@m, [{}, {"m"}]> : tensor<8x30xf32>
      %1 = stablehlo.tanh %0 : tensor<8x30xf32>
      return %1 : tensor<8x30xf32>"""
    assert found(body, {"x": ("8x30xf32", '[{"m"}, {}]')}, "tensor<8x30xf32>", "m=8") == [("", 30, 8)]


def test_redistributions_of_sizes_that_divide() -> None:
    body = """%0 = sdy.sharding_constraint %x <@m, [{}, {"m"}]> : tensor<8x32xf32>
      %1 = stablehlo.reshape %0 : (tensor<8x32xf32>) -> tensor<8x8x4xf32>
      return %1 : tensor<8x8x4xf32>"""
    assert found(body, {"x": ("8x32xf32", '[{"m"}, {}]')}, "tensor<8x8x4xf32>", "m=8") == []
