"""The shardings that follow from annotations, before propagation."""

from __future__ import annotations

import pytest

from shardpass.importing.known_shardings import KnownShardings
from shardpass.ir.annotations import SHARDING, Signature
from shardpass.ir.context import parse_module
from shardpass.ir.walk import every_op, operation
from shardpass.sharding import parse_mesh

ROWS = '{mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}'  # over the first axis of 2x2
MESH = "mesh['x'=2,'y'=2]"
# each makes %v of the array %a, whose rows are split over x
MADE = {
    "of an argument": ("%v = stablehlo.negate %a : tensor<8x4xf32>", [("x",), ()]),
    "transposed": ("%v = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>", [(), ("x",)]),
    "broadcast": (
        "%v = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<8x4xf32>) -> tensor<3x8x4xf32>",
        [(), ("x",), ()],
    ),
    "reshaped": ("%v = stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<8x4x1xf32>", [("x",), (), ()]),
    "a product of rows": (
        "%v = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
        ": (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>",
        [("x",), ()],
    ),
    "constrained": (
        '%v = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[1,4]<=[4]}"} '
        ": (tensor<8x4xf32>) -> tensor<8x4xf32>",
        [(), ("x", "y")],
    ),
    "in a branch": (
        """%v = "stablehlo.if"(%p) ({
          stablehlo.return %a : tensor<8x4xf32>
        }, {
          stablehlo.return %a : tensor<8x4xf32>
        }) : (tensor<i1>) -> tensor<8x4xf32>""",
        [("x",), ()],
    ),
    "of a loop": (
        """%z = stablehlo.constant dense<false> : tensor<i1>
        %w:2 = stablehlo.while(%q = %p, %c = %a) : tensor<i1>, tensor<8x4xf32>
          cond {
            stablehlo.return %q : tensor<i1>
          } do {
            %d = stablehlo.negate %c : tensor<8x4xf32>
            stablehlo.return %z, %d : tensor<i1>, tensor<8x4xf32>
          }
        %v = stablehlo.negate %w#1 : tensor<8x4xf32>""",
        [("x",), ()],
    ),
    "of nothing known": ("%v = stablehlo.negate %b : tensor<4x8xf32>", None),
    "summed along what is split": (
        """%z = stablehlo.constant dense<0.0> : tensor<f32>
        %v = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
            : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>""",
        None,
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_a_sharding_follows_from_the_operands(name: str) -> None:
    body, wanted = MADE[name]
    module = parse_module(
        f"""func.func @main(%a: tensor<8x4xf32> {ROWS}, %b: tensor<4x8xf32>, %p: tensor<i1>) {{
        {body}
        return
      }}"""
    )
    with module.context:
        main = module.body.operations[0]
        annotated = [op for op in every_op(operation(main)) if SHARDING in op.attributes]
        known = KnownShardings(main, Signature(main).arguments, annotated, 4, parse_mesh(MESH))
        last = operation(list(main.regions[0].blocks[0].operations)[-2])
        found = known.of(last.results[0])
    assert (None if found is None else [tuple(axis.name for axis in dim) for dim in found.dims]) == wanted
