"""Places that one name of the user's text annotates change together; casts are moved behind what sends them."""

from __future__ import annotations

from shardpass.advise.find.propose.alike import families, shared
from shardpass.advise.find.propose.casts import casts
from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.place.sites import ARGUMENT, Sites, read
from shardpass.advise.place.write import with_changes
from shardpass.ir.context import parse_module
from shardpass.report.naming import Sources

CACHE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%0: tensor<2x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>} loc("cache"),
                  %1: tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"))
      -> (tensor<16x8xf32>, tensor<16x24xf32>) {
    %2 = stablehlo.slice %0 [0:1, 0:16, 0:8] : (tensor<2x16x8xf32>) -> tensor<1x16x8xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"data"}, {}]> : tensor<16x8xf32> loc("train.py":7:5)
    %5 = sdy.sharding_constraint %1 <@mesh, [{"data"}, {}]> : tensor<16x24xf32> loc("train.py":8:5)
    return %4, %5 : tensor<16x8xf32>, tensor<16x24xf32>
  }
}
"""
BOTH = ("data", "model")


def specs(edit: Edit) -> dict[object, object]:
    """The new specs of an edit, by the names of arguments and the lines of constraints."""
    return {change.site.place.line or change.site.names[0]: change.spec for change in edit}


def test_a_cache_and_the_constraint_on_a_layer_of_it() -> None:
    """The batch of both gets another axis; the other constraint, of another type, does not."""
    reading = read(CACHE, "step.mlir", Sources(()))
    with reading.module.context:
        made = [specs(edit) for edit in families(Context(Sites(reading)))]
    assert {"cache": ((), BOTH, ()), 7: (BOTH, ())} in made
    assert {"cache": ((), ("model",), ()), 7: (("model",), ())} not in made  # its tiles would be twice as large


def test_constraints_of_one_spec_whatever_their_shapes() -> None:
    reading = read(CACHE, "step.mlir", Sources(()))
    with reading.module.context:
        made = [specs(edit) for edit in shared(Context(Sites(reading)))]
    assert {7: (BOTH, ()), 8: (BOTH, ())} in made
    assert {7: ((), ("data",)), 8: ((), ("data",))} in made  # 8 and 24 are multiples of 4
    assert all(len(one) == 2 for one in made)


EXPERTS = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "expert"=4]>
  func.func @main(%0: tensor<8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"expert"}, {}]>} loc("w_in"),
                  %1: tensor<8x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"expert"}, {}]>} loc("w_out"))
      -> (tensor<8x16x32xf32>, tensor<8x32x16xf32>) {
    return %0, %1 : tensor<8x16x32xf32>, tensor<8x32x16xf32>
  }
}
"""


def test_arguments_of_one_spec_and_rank_whatever_their_shapes() -> None:
    """The axis of the experts is moved to their own dimension in both weights."""
    reading = read(EXPERTS, "step.mlir", Sources(()))
    with reading.module.context:
        made = [
            {change.site.names[0]: change.spec for change in edit if change.site.kind == ARGUMENT}
            for edit in families(Context(Sites(reading)))
        ]
    assert {"w_in": (("expert",), (), ()), "w_out": (("expert",), (), ())} in made


QUANTIZED = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%0: tensor<64x64xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("q"))
      -> tensor<64x64xf32> {
    %1 = stablehlo.convert %0 : (tensor<64x64xi8>) -> tensor<64x64xf32> loc("train.py":7:5)
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> : tensor<64x64xf32> loc("train.py":8:5)
    return %2 : tensor<64x64xf32>
  }
}
"""


def test_what_is_cast_is_constrained_before_the_cast() -> None:
    reading = read(QUANTIZED, "step.mlir", Sources(()))
    with reading.module.context:
        (whole, *_) = casts(Context(Sites(reading)))
        mesh = reading.program.mesh.mesh
        assert whole[0].spec == ((), ())
        module = parse_module(QUANTIZED)
        with module.context:
            edited = str(parse_module(with_changes(module, mesh, whole), trusted=True))
    made = [line for line in edited.splitlines() if "sharding_constraint" in line]
    assert "tensor<64x64xi8>" in made[0]
    assert edited.index("sharding_constraint") < edited.index("convert")


BORDERS = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%0: tensor<64x64xf32> loc("x")) -> tensor<64x64xf32> {
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>]
        manual_axes={"data"} (%a: tensor<8x64xf32>) {
      %2 = stablehlo.negate %a : tensor<8x64xf32>
      sdy.return %2 : tensor<8x64xf32>
    } : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("train.py":7:5)
    %3 = sdy.sharding_constraint %1 <@mesh, [{"data"}, {}]> : tensor<64x64xf32> loc("train.py":9:5)
    return %3 : tensor<64x64xf32>
  }
}
"""


def test_the_borders_of_a_shard_map_are_no_constraints_of_the_user() -> None:
    reading = read(BORDERS, "step.mlir", Sources(()))
    with reading.module.context:
        assert [site.place.line for site in Sites(reading).constraints] == [9]
