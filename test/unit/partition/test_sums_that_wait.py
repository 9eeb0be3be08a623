"""Sums that wait: one collective serves for several products, and the program computes what one device would.

Each ``body`` takes ``%p``, a product that is split over its contraction, through ops that keep sums, to an ``add`` of
``%q``, another such product. Both products are of whole numbers, and the whole program on one device is the witness.
The bytes expected are arithmetic: the sum of what is added, once.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.ir.annotations import WAITS

A, W, P = "tensor<16x64xf32>", "tensor<64x32xf32>", "tensor<16x32xf32>"
COLUMNS, ROWS = '{mhlo.sharding = "{devices=[1,4]<=[4]}"}', '{mhlo.sharding = "{devices=[4,1]<=[4]}"}'
WHOLE = '{mhlo.sharding = "{replicated}"}'

BODIES = {
    "added": (P, ""),
    "negate": (P, f"%m = stablehlo.negate %p : {P}"),
    "subtract": (P, f"%m = stablehlo.subtract %r, %p : {P}"),
    "residual": (P, f"%m = stablehlo.add %r, %p : {P}"),
    "transpose": (
        "tensor<32x16xf32>",
        f"%m = stablehlo.transpose %p, dims = [1, 0] : ({P}) -> tensor<32x16xf32>",
    ),
    "reshape": ("tensor<512xf32>", f"%m = stablehlo.reshape %p : ({P}) -> tensor<512xf32>"),
    "reverse": (P, f"%m = stablehlo.reverse %p, dims = [0] : {P}"),
    "slice": ("tensor<8x32xf32>", f"%m = stablehlo.slice %p [4:12, 0:32] : ({P}) -> tensor<8x32xf32>"),
    "convert": ("tensor<16x32xf64>", f"%m = stablehlo.convert %p : ({P}) -> tensor<16x32xf64>"),
    "broadcast": (
        "tensor<3x16x32xf32>",
        f"%m = stablehlo.broadcast_in_dim %p, dims = [1, 2] : ({P}) -> tensor<3x16x32xf32>",
    ),
    "concatenate": (
        "tensor<32x32xf32>",
        f"%m = stablehlo.concatenate %p, %r, dim = 0 : ({P}, {P}) -> tensor<32x32xf32>",
    ),
    "pad": (
        "tensor<18x32xf32>",
        f"%c = stablehlo.constant dense<3.0> : tensor<f32> %m = stablehlo.pad %p, %c, low = [1, 0], high = [1, 0], "
        f"interior = [0, 0] : ({P}, tensor<f32>) -> tensor<18x32xf32>",
    ),
    "select": (
        P,
        f"%z = stablehlo.constant dense<1.0> : {P} %t = stablehlo.compare GT, %r, %z : ({P}, {P}) -> tensor<16x32xi1> "
        f"%m = stablehlo.select %t, %p, %r : tensor<16x32xi1>, {P}",
    ),
    "reduce": (
        "tensor<32xf32>",
        "%c = stablehlo.constant dense<5.0> : tensor<f32> %m = stablehlo.reduce(%p init: %c) applies stablehlo.add "
        f"across dimensions = [0] : ({P}, tensor<f32>) -> tensor<32xf32>",
    ),
    "dynamic_slice": (
        "tensor<8x32xf32>",
        "%i = stablehlo.constant dense<3> : tensor<i32> %m = stablehlo.dynamic_slice %p, %i, %i, sizes = [8, 32] : "
        f"({P}, tensor<i32>, tensor<i32>) -> tensor<8x32xf32>",
    ),
    "dynamic_update_slice": (
        P,
        f"%i = stablehlo.constant dense<1> : tensor<i32> %u = stablehlo.slice %r [0:4, 0:32] : ({P}) -> "
        "tensor<4x32xf32> %m = stablehlo.dynamic_update_slice %p, %u, %i, %i : "
        f"({P}, tensor<4x32xf32>, tensor<i32>, tensor<i32>) -> {P}",
    ),
}


def program(name: str) -> str:
    """``%q`` has the type of ``%m``: a product of the same rows, of which the last operand is split too."""
    kind, body = BODIES[name]
    shape, element = re.fullmatch(r"tensor<(.*)x(f\d+)>", kind).groups()  # type: ignore[union-attr]
    sizes = [int(size) for size in shape.split("x")]
    left = f"tensor<64x{shape}x{element}>"
    spread = f'{{mhlo.sharding = "{{devices=[4{",1" * len(sizes)}]<=[4]}}"}}'
    ones = f"tensor<64x{element}>"
    vector = '{mhlo.sharding = "{devices=[4]<=[4]}"}'
    return f"""
    module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"}} {{
      func.func @main(%a: {A} {COLUMNS}, %w: {W} {ROWS}, %v: {left} {spread}, %o: {ones} {vector},
          %r: {P} {WHOLE}) -> ({kind} {WHOLE}) {{
        %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : ({A}, {W}) -> {P}
        %q = stablehlo.dot_general %o, %v, contracting_dims = [0] x [0] : ({ones}, {left}) -> {kind}
        {body}
        %s = stablehlo.add {"%m" if body else "%p"}, %q : {kind}
        return %s : {kind}
      }}
    }}
    """


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", sorted(BODIES))
def test_one_collective_sums_two_products(name: str) -> None:
    outcome = check_text(program(name))
    assert outcome.kinds == ["all_reduce"]
    shape, element = re.fullmatch(r"tensor<(.*)x(f\d+)>", BODIES[name][0]).groups()  # type: ignore[union-attr]
    size = 8 if element == "f64" else 4
    for extent in shape.split("x"):
        size *= int(extent)
    (use,) = outcome.collectives
    assert use.bytes_received == 2 * size * 3 // 4


def test_a_factor_may_be_infinite() -> None:
    """0 on three devices and 1 on one, by an infinite factor: the sum is infinite, where a summand would be 0 * inf."""
    text = program("added").replace("stablehlo.add %p, %q", "stablehlo.multiply %p, %r")
    a, w = np.zeros((16, 64), np.float32), np.ones((64, 32), np.float32)
    a[:, 0] = 1
    rest = np.zeros((64, 16, 32), np.float32), np.zeros(64, np.float32), np.full((16, 32), np.inf, np.float32)
    check_text(text, (a, w, *rest))


def test_text_says_what_waits_and_is_enough() -> None:
    said = str(shardpass.run_pipeline(program("transpose"), "propagate"))
    assert said.count(WAITS) == 3  # both products, and the transpose
    rest = "builtin.module(shardpass-partition,shardpass-redistribute,canonicalize,cse)"
    built = str(shardpass.run_pipeline(said, rest))
    assert built.count('"stablehlo.all_reduce"') == 1
    assert WAITS not in built


@pytest.mark.parametrize("what", ["[1,4]", "[4,1]", "none"])
def test_a_text_that_contradicts_itself_gives_a_right_program(what: str) -> None:
    """The addition is not split as what it takes: its operands are completed where they are made."""
    said = str(shardpass.run_pipeline(program("added"), "propagate"))
    lines = said.splitlines()
    at = next(index for index, line in enumerate(lines) if "stablehlo.add" in line)
    lines[at] = re.sub(r', shardpass.split = "[^"]*"', "", lines[at])
    if what != "none":
        lines[at] = lines[at].replace("{mhlo.sharding", f'{{shardpass.split = "{{devices={what}<=[4]}}", mhlo.sharding')
    rest = "builtin.module(shardpass-partition,shardpass-redistribute,canonicalize,cse)"
    executable = shardpass.compile(shardpass.run_pipeline("\n".join(lines), rest))
    rng = np.random.default_rng(0)
    arguments = [rng.integers(-3, 4, b.shape).astype(b.dtype) for b in executable.signature.arguments]
    a, w, v, o, _ = arguments
    np.testing.assert_array_equal(np.asarray(executable(*arguments)[0]), a @ w + np.tensordot(o, v, 1))
