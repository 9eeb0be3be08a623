"""Shardings and constraints in the notation of a module, read back from the module's text."""

import pytest
from jaxlib.mlir import ir

from shardpass.ir.constraints import Notation
from shardpass.ir.context import parse_module
from shardpass.sharding import Mesh, Sharding

MESH = Mesh((("x", 2), ("y", 4)))
FUNCTION = "func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {{ {} return %a : tensor<8x8xf32> }}"
OTHER = 'sdy.mesh @added_mesh = <["d"=8]>'
SAME = 'sdy.mesh @m = <["x"=2, "y"=4]>'
TEXT = '[{"x"}, {}]>'


@pytest.mark.parametrize(
    ("head", "attribute", "mesh", "added"),
    [
        (SAME, "sdy.sharding", "m", False),
        (OTHER, "sdy.sharding", "added_mesh_", True),  # whose name is not taken
        ("", "mhlo.sharding", "", False),
    ],
)
def test_constraint(head, attribute, mesh, added):
    module = parse_module(head + FUNCTION.format(""))
    with module.context, ir.Location.unknown():
        notation = Notation(module, MESH)
        block = module.body.operations[len(module.body.operations) - 1].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            made = notation.constraint(block.arguments[0], Sharding.tiled(MESH, (("x",), ())))
        text = str(module)
        assert notation.attribute == attribute
        assert (f'sdy.mesh @{mesh} = <["x"=2, "y"=4]>' in text) == bool(mesh)
        assert text.count("sdy.mesh") == bool(head) + added
        assert (f"sdy.sharding_constraint %arg0 <@{mesh}, {TEXT}" if mesh else "custom_call @Sharding(%arg0)") in text
        notation.rewrite(made, Sharding.tiled(MESH, ((), ("y",))))
        assert ('[{}, {"y"}]' if mesh else "devices=[1,4,2]") in str(module)
        assert module.operation.verify()
