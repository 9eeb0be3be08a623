"""Reading and writing annotations on a module."""

from __future__ import annotations

from typing import Any

import pytest
from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.ir import annotations as names
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import operation
from shardpass.sharding import Mesh

MODULE = """
func.func @helper(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}", jax.arg_info = "x"}, %y: tensor<2xf32>)
    -> (tensor<4xf32> {jax.result_info = "r"}, tensor<4xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}"""


@pytest.fixture
def module() -> Any:
    made = parse_module(MODULE)
    with made.context, ir.Location.unknown():
        yield made


def test_main_is_found_by_its_name(module: Any) -> None:
    assert names.main_of(module).attributes["sym_name"].value == "main"


def test_a_signature_that_is_written_back_unchanged_changes_nothing(module: Any) -> None:
    before = str(module)
    names.Signature(names.main_of(module)).write()
    assert str(module) == before


def test_attributes_added_and_taken_away_leave_the_others(module: Any) -> None:
    main = names.main_of(module)
    signature = names.Signature(main)
    assert sorted(signature.arguments[0]) == ["jax.arg_info", "mhlo.sharding"]
    assert signature.arguments[1] == {}
    del signature.arguments[0]["mhlo.sharding"]
    signature.arguments[1]["mhlo.sharding"] = ir.StringAttr.get("{maximal device=1}")
    signature.results[1]["mhlo.sharding"] = ir.StringAttr.get("{replicated}")
    signature.write()
    again = names.Signature(main)
    assert list(again.arguments[0]) == ["jax.arg_info"]
    assert again.arguments[1]["mhlo.sharding"].value == "{maximal device=1}"
    assert again.results[0]["jax.result_info"].value == "r"
    assert again.results[1]["mhlo.sharding"].value == "{replicated}"


def test_custom_calls_are_known_by_their_target(module: Any) -> None:
    first, second, _ = map(operation, names.main_of(module).regions[0].blocks[0].operations)
    assert names.custom_call_target(first) == "Sharding" == names.CONSTRAINT
    assert names.custom_call_target(second) == ""
    assert names.get_text(first, "mhlo.sharding") == "{devices=[2]<=[2]}"
    assert names.get_text(second, "mhlo.sharding") is None


def test_the_number_of_devices(module: Any) -> None:
    assert names.num_devices(module) is None
    names.set_num_devices(module, 6)
    assert names.num_devices(module) == 6
    assert "mhlo.num_replicas = 1 : i32" in str(module)


def test_the_mesh_is_its_text(module: Any) -> None:
    assert names.mesh_of(module) is None
    mesh = Mesh((("data", 2), ("model", 3)), (0, 2, 4, 1, 3, 5))
    names.set_mesh(module, mesh)
    assert names.mesh_of(module) == mesh
    assert names.mesh_of(parse_module(str(module))) == mesh


def test_a_mesh_that_cannot_be_read_is_an_error(module: Any) -> None:
    module.operation.attributes["shardpass.mesh"] = ir.StringAttr.get("mesh['x'=")
    with pytest.raises(ShardpassError):
        names.mesh_of(module)
