"""Which annotations an edit is about: a result goes with the argument that it updates."""

from __future__ import annotations

from shardpass.edits.candidates import Candidates
from shardpass.edits.sites import ARGUMENT, RESULT, Sites, read
from shardpass.report.naming import Sources

SPLIT = 'sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>'
STATES = f"""
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%p: tensor<64x32xf32> {{{SPLIT}}} loc("params['w']"),
      %m: tensor<64x32xf32> {{{SPLIT}}} loc("mu['w']"),
      %n: tensor<64x32xf32> {{{SPLIT}}} loc("nu['w']"))
      -> (tensor<64x32xf32> {{{SPLIT}, jax.result_info = "result[0]['w']"}},
          tensor<64x32xf32> {{{SPLIT}, jax.result_info = "result[1]['w']"}},
          tensor<64x32xf32> {{{SPLIT}, jax.result_info = "result[2]['w']"}}) {{
    %0 = stablehlo.add %p, %m : tensor<64x32xf32>
    %1 = stablehlo.add %m, %n : tensor<64x32xf32>
    %2 = stablehlo.multiply %n, %n : tensor<64x32xf32>
    return %0, %1, %2 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>
  }}
}}
"""


def test_a_state_is_edited_with_its_own_result_alone() -> None:
    """Of (params, mu, nu) the second result is the new mu, though all three have one type and one path below."""
    reading = read(STATES, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(Candidates(Sites(reading), (), ()).written())
    of_mu = [edit for edit in edits if edit[0].site.kind == ARGUMENT and edit[0].site.names == ("mu['w']",)]
    assert of_mu
    for edit in of_mu:
        assert [change.site.names for change in edit if change.site.kind == RESULT] == [("result[1]['w']",)]
        assert {change.spec for change in edit} == {edit[0].spec}


def test_the_results_of_updated_arguments_are_not_dropped() -> None:
    """A loop hands each result on as an argument: with another sharding it would be resharded between two steps."""
    reading = read(STATES, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(Candidates(Sites(reading), (), ()).written())
    assert not [edit for edit in edits for change in edit if change.site.kind == RESULT and change.spec is None]


LAYERS = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%0: tensor<64x64xf32> {SPLIT} loc("params[0]"), %1: tensor<64x64xf32> {SPLIT} loc("params[1]"))
      -> (tensor<64x64xf32> {SPLIT, jax.result_info = "result[0]"},
          tensor<64x64xf32> {SPLIT, jax.result_info = "result[1]"}) {
    return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
  }
}
"""


def test_the_layers_of_a_list_are_edited_with_the_list_that_is_returned() -> None:
    text = LAYERS.replace("{SPLIT", "{" + SPLIT)
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(Candidates(Sites(reading), (), ()).written())
    of_params = [edit for edit in edits if edit[0].site.kind == ARGUMENT]
    assert of_params
    for edit in of_params:
        assert [name for change in edit[1:] for name in change.site.names] == ["result[0]", "result[1]"]
