"""Partial sums in programs that are written by hand: a region at the end shows what each device holds.

JAX's programs are in ``test/unit/jax/test_summands_on_devices.py``. Here are uneven dimensions, values whose sharding
nobody says, and ops through which a sum cannot pass.
"""

from __future__ import annotations

import numpy as np
import pytest

import shardpass
from shardpass.ir.collectives import collectives

A = (np.arange(32, dtype=np.float32).reshape(4, 8) % 5) - 1.5
B = np.arange(48, dtype=np.float32).reshape(8, 6) % 7


def program(arguments: str, body: str, value: str, shape: tuple[int, ...], element: str = "f32") -> str:
    """The parts of ``value``, a partial sum over x, beside one another."""
    tile = "x".join([*map(str, shape), element])
    whole = "x".join([*map(str, (2 * shape[0], *shape[1:])), element])
    free = ", ".join(["{}"] * len(shape))
    split = ", ".join(['{"x"}', *["{}"] * (len(shape) - 1)])
    return f"""module {{
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main({arguments}) -> tensor<{whole}> {{
    {body}
    %shown = sdy.manual_computation({value}) in_shardings=[<@mesh, [{free}], unreduced={{"x"}}>]
        out_shardings=[<@mesh, [{split}]>] manual_axes={{"x", "y"}} (%tile: tensor<{tile}>) {{
      sdy.return %tile : tensor<{tile}>
    }} : (tensor<{tile}>) -> tensor<{whole}>
    return %shown : tensor<{whole}>
  }}
}}"""


def shown(text: str, *given: np.ndarray) -> tuple[list[np.ndarray], list[str]]:
    """What the devices along x hold, and the kinds of collectives."""
    module = shardpass.run_pipeline(text, "partition")
    (found,) = shardpass.compile(module)(*given)
    return np.split(np.asarray(found), 2), [use.kind for use in collectives(module)]


def test_uneven_tiles_stay_where_they_are() -> None:
    argument = '%a: tensor<5x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    x = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    parts, kinds = shown(program(argument, "", "%a", (5, 3)), x)
    keep = np.arange(5)[:, None] < 3
    np.testing.assert_array_equal(parts[0], np.where(keep, x, 0))
    np.testing.assert_array_equal(parts[1], np.where(keep, 0, x))
    assert kinds == []


DOT = """%p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>"""
TWO = "%a: tensor<4x8xf32>, %b: tensor<8x6xf32>"
SPLIT = '%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8x6xf32>'


@pytest.mark.parametrize("arguments", [TWO, SPLIT], ids=["of nothing known", "of one split operand"])
def test_a_product_is_not_summed_first(arguments: str) -> None:
    parts, kinds = shown(program(arguments, DOT, "%p", (4, 6)), A, B)
    for mine, k in zip(parts, (slice(0, 4), slice(4, 8)), strict=True):
        np.testing.assert_array_equal(mine, A[:, k] @ B[k])
    assert "all_reduce" not in kinds


def test_what_a_reduce_starts_from_is_counted_once() -> None:
    argument = '%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    body = """%start = stablehlo.constant dense<5.0> : tensor<f32>
    %s = stablehlo.reduce(%a init: %start) applies stablehlo.add across dimensions = [1]
        : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>"""
    parts, _ = shown(program(argument, body, "%s", (4,)), A)
    np.testing.assert_array_equal(parts[0], A[:, :4].sum(1) + 5)
    np.testing.assert_array_equal(parts[1], A[:, 4:].sum(1))


# each is no sum of the same of summands: the product is summed, and stays on the first device
NOT_LINEAR = {
    "maximum": (
        "%z = stablehlo.constant dense<0.0> : tensor<4x6xf32>\n%v = stablehlo.maximum %p, %z : tensor<4x6xf32>",
        lambda p: np.maximum(p, 0),
    ),
    "a product of two": ("%v = stablehlo.multiply %p, %p : tensor<4x6xf32>", lambda p: p * p),
    "divided by": (
        """%o = stablehlo.constant dense<64.5> : tensor<4x6xf32>
        %q = stablehlo.add %p, %o : tensor<4x6xf32>
        %v = stablehlo.divide %o, %q : tensor<4x6xf32>""",
        lambda p: np.float32(64.5) / (p + np.float32(64.5)),
    ),
    "halved integers": (
        """%i = stablehlo.convert %b : (tensor<8x6xf32>) -> tensor<8x6xi32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %s = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<8x6xi32>, tensor<i32>) -> tensor<6xi32>
        %four = stablehlo.constant dense<4> : tensor<6xi32>
        %h = stablehlo.divide %s, %four : tensor<6xi32>
        %twice = stablehlo.add %h, %h : tensor<6xi32>
        %g = stablehlo.convert %twice : (tensor<6xi32>) -> tensor<6xf32>
        %v = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>""",
        lambda p: np.broadcast_to(2 * (B.sum(0).astype(np.int32) // 4), p.shape),
    ),
    "the greatest": (
        """%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1]
            : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
        %v = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>""",
        lambda p: np.broadcast_to(p.max(1, keepdims=True), p.shape),
    ),
    "rounded": (
        """%i = stablehlo.convert %p : (tensor<4x6xf32>) -> tensor<4x6xi32>
        %f = stablehlo.convert %i : (tensor<4x6xi32>) -> tensor<4x6xf32>
        %v = stablehlo.add %f, %f : tensor<4x6xf32>""",
        lambda p: 2 * np.trunc(p),
    ),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_an_op_that_is_not_linear_takes_the_sum(name: str) -> None:
    body, function = NOT_LINEAR[name]
    parts, _ = shown(program(SPLIT, f"{DOT}\n{body}", "%v", (4, 6)), A, B)
    np.testing.assert_allclose(sum(parts), function(A @ B), rtol=1e-6)


def test_summands_over_one_axis_are_not_taken_for_those_over_another() -> None:
    """Both axes have two devices."""
    arguments = '%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %b: tensor<8x6xf32>'
    body = f"""{DOT}
    %q = sdy.sharding_constraint %p <@mesh, [{{}}, {{}}], unreduced={{"y"}}> : tensor<4x6xf32>"""
    parts, kinds = shown(program(arguments, body, "%q", (4, 6)), A, B)
    np.testing.assert_array_equal(parts[0], A @ B)
    np.testing.assert_array_equal(parts[1], 0)
    assert kinds == ["all_gather"]  # 64 bytes of a; an all_reduce of the product is 96


LOOP = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %c = %p) : tensor<i32>, tensor<4x6xf32>
      cond {{
        %n = stablehlo.constant dense<2> : tensor<i32>
        %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        {0}
        stablehlo.return %next, %d : tensor<i32>, tensor<4x6xf32>
      }}"""


def test_a_loop_carries_the_summands() -> None:
    """Each turn adds the product, which stands before the loop."""
    body = f"{DOT}\n{LOOP.format('%d = stablehlo.add %c, %p : tensor<4x6xf32>')}"
    parts, kinds = shown(program(SPLIT, body, "%w#1", (4, 6)), A, B)
    for mine, k in zip(parts, (slice(0, 4), slice(4, 8)), strict=True):
        np.testing.assert_array_equal(mine, 3 * (A[:, k] @ B[k]))
    assert "all_reduce" not in kinds


def test_a_loop_whose_body_needs_the_sum_takes_the_sum() -> None:
    body = f"{DOT}\n{LOOP.format('%d = stablehlo.multiply %c, %c : tensor<4x6xf32>')}"
    parts, _ = shown(program(SPLIT, body, "%w#1", (4, 6)), A, B)
    np.testing.assert_allclose(sum(parts), (A @ B) ** 4, rtol=1e-6)


def test_a_long_chain_of_sums_is_looked_at_once() -> None:
    """Forty values, each the sum of the one before with itself: 2^40 ways lead to the first."""
    steps = [f"%v{k + 1} = stablehlo.add %v{k}, %v{k} : tensor<4x8xf32>" for k in range(40)]
    body = "\n".join(["%v0 = stablehlo.negate %a : tensor<4x8xf32>", *steps])
    parts, _ = shown(program("%a: tensor<4x8xf32>", body, "%v40", (4, 8)), A)
    np.testing.assert_array_equal(parts[0], -A * 2.0**40)
    np.testing.assert_array_equal(parts[1], 0)
