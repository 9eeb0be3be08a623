"""Which annotations an edit is about: a result goes with the argument that it updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from shardpass.advise.find.kinds import misfit
from shardpass.advise.find.propose import KINDS
from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.states import sizes, spread, stacked, twins
from shardpass.advise.find.propose.unplaced import banks, batches
from shardpass.advise.find.propose.values import looked_up
from shardpass.advise.find.propose.written import drops
from shardpass.advise.find.scheme import harm, label
from shardpass.advise.place.sites import ARGUMENT, RESULT, Sites, read
from shardpass.advise.place.write import Change
from shardpass.ir.context import parse_module
from shardpass.ir.walk import every_op
from shardpass.report.naming import Sources

SPLIT = 'sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>'
STATES = (Path(__file__).parent / "states.txt").read_text()  # (params, mu, nu) -> (params, mu, nu), all in SPLIT


def proposed(sites: Sites) -> list[Edit]:
    """All edits of all kinds, except padding."""
    context = Context(sites)
    return [edit for kind in KINDS for edit in kind.propose(context)]


def test_ops_of_the_imported_program_are_known_in_the_users() -> None:
    reading = read(STATES, "step.mlir", Sources(()))
    module = parse_module(STATES)
    with module.context:
        names = [op.name for op in every_op(module.operation)]
    assert [names[reading.origin[op.number]] for op in reading.program.body.every_op()] == [
        "stablehlo.add",
        "stablehlo.add",
        "stablehlo.multiply",
    ]


def test_a_state_is_edited_with_its_own_result_alone() -> None:
    """Of (params, mu, nu) the second result is the new mu, though all three have one type and one path below."""
    reading = read(STATES, "step.mlir", Sources(()))
    with reading.module.context:
        edits = proposed(Sites(reading))
    of_mu = [edit for edit in edits if edit[0].site.kind == ARGUMENT and edit[0].site.names == ("mu['w']",)]
    assert of_mu
    for edit in of_mu:
        assert [change.site.names for change in edit if change.site.kind == RESULT] == [("result[1]['w']",)]
        assert {change.spec for change in edit} == {edit[0].spec}


def test_the_results_of_updated_arguments_are_not_dropped() -> None:
    """A loop hands each result on as an argument: with another sharding it would be resharded between two steps."""
    reading = read(STATES, "step.mlir", Sources(()))
    with reading.module.context:
        edits = proposed(Sites(reading))
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
        edits = proposed(Sites(reading))
    of_params = [edit for edit in edits if edit[0].site.kind == ARGUMENT]
    assert of_params
    for edit in of_params:
        assert [name for change in edit[1:] for name in change.site.names] == ["result[0]", "result[1]"]


SUMMED = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%0: tensor<64x64xf32> {SPLIT} loc("params['up']"),
                  %1: tensor<64x32xf32> {SPLIT} loc("params['down']"),
                  %2: tensor<64x48xf32> loc("x")) -> (tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x48xf32>) {
    %3 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<64x64xf32> loc("train.py":7:5)
    %4 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> : tensor<64x32xf32> loc("train.py":8:5)
    %5 = sdy.sharding_constraint %2 <@mesh, [{}, {}]> : tensor<64x48xf32> loc("train.py":9:5)
    %6 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {}]> : tensor<64x48xf32> loc("train.py":10:5)
    return %3, %4, %5 : tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x48xf32>
  }
}
"""


def test_constraints_that_split_nothing_are_a_set() -> None:
    """Two are of the types of parameters, whose specs they get; all three are dropped, and not the one over 'data'."""
    reading = read(SUMMED.replace("{SPLIT", "{" + SPLIT), "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        made = [{change.site.place.line: change.spec for change in edit} for edit in (*twins(context), *drops(context))]
        again = Context(context.sites.with_changes([Change(site, None) for site in context.sites.constraints[:1]]))
        left = [{change.site.place.line for change in edit} for edit in twins(again)]
    assert {7: (("model",), ()), 8: (("model",), ())} in made
    assert {7: None, 8: None, 9: None} in made
    assert left == [{8}]  # what an edit dropped is no place any more


UP, DOWN = '[{}, {}, {"model"}]', '[{}, {"model"}, {}]'
MOMENTUM = f"""
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%0: tensor<16x32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {UP}>}} loc("momentum['up']"),
                  %1: tensor<16x64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, {DOWN}>}} loc("momentum['down']"),
                  %2: tensor<8x7xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"model"}}, {{}}]>}} loc("bias"))
      -> (tensor<16x32x64xf32>, tensor<16x64x32xf32>, tensor<8x7xf32>) {{
    return %0, %1, %2 : tensor<16x32x64xf32>, tensor<16x64x32xf32>, tensor<8x7xf32>
  }}
}}
"""


def test_a_state_is_spread_as_a_whole_over_the_axis_that_does_not_split_it() -> None:
    """Each array by its largest whole dimension; 7 columns are no multiple of 4 devices."""
    reading = read(MOMENTUM, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(spread(Context(Sites(reading))))
    assert [{change.site.pattern: change.spec for change in edit} for edit in edits] == [
        {"momentum['up']": ((), ("data",), ("model",)), "momentum['down']": ((), ("model",), ("data",))}
    ]


VOCABULARY = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%0: tensor<96x16xf32> loc("params['embed']"), %1: tensor<16x96xf32> loc("params['head']"),
                  %2: tensor<96x16xf32> loc("mu['embed']"), %3: tensor<16x96xf32> loc("mu['head']"),
                  %4: tensor<96xi32> loc("tokens"))
      -> (tensor<96x16xf32>, tensor<16x96xf32>, tensor<96x16xf32>, tensor<16x96xf32>) {
    return %0, %1, %2, %3 : tensor<96x16xf32>, tensor<16x96xf32>, tensor<96x16xf32>, tensor<16x96xf32>
  }
}
"""


def test_an_embedding_the_head_and_their_moments_are_split_together() -> None:
    """By the size of the vocabulary, each in its own dimension; tokens of this size are no state."""
    reading = read(VOCABULARY, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(sizes(Context(Sites(reading))))
    rows, columns = (("model",), ()), ((), ("model",))
    assert {
        "params['embed']": rows, "params['head']": columns, "mu['embed']": rows, "mu['head']": columns
    } in [{change.site.pattern: change.spec for change in edit} for edit in edits]  # fmt: skip
    assert all(change.site.pattern != "tokens" for edit in edits for change in edit)


def test_an_edit_that_changes_the_scheme_has_a_label_with_its_bytes() -> None:
    """momentum['up'] has 16 x 32 x 64 x 4 bytes, 128 KiB, half of them on each device."""
    reading = read(MOMENTUM, "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        up = context.sites.arguments[0]
        specs = ((),) * 3, (("model",), (), ()), (("data",), (), ("model",))
        edits = [(Change(up, spec),) for spec in specs]
    assert [harm(context, edit) for edit in edits] == [64 * 1024, 0, 0]
    assert [label(context, edit) for edit in edits] == [
        "the edit gives up splits: 64.0 KiB more of `momentum['up']` on each device",
        "the edit splits `momentum['up']` otherwise, wherever it is placed",
        "",
    ]


def test_rows_of_a_lookup_are_a_place_though_the_lookup_masks_some() -> None:
    def step(table: Any, tokens: Any) -> Any:
        rows = jnp.take(table, tokens, axis=0)  # NaN for tokens that the table does not have
        return jnp.tanh(rows) @ table.T

    shapes = jax.ShapeDtypeStruct((64, 8), "float32"), jax.ShapeDtypeStruct((4, 16), "int32")
    module = jax.jit(step).lower(*shapes).compiler_ir()
    reading = read(str(module.operation.get_asm(enable_debug_info=True)), "step.mlir", Sources())
    with reading.module.context:
        sites = looked_up(Context(Sites(reading)))
    assert [(site.names, site.array.shape) for site in sites] == [(("rows",), (4, 16, 8))]


WHOLE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "fsdp"=2, "model"=2]>
  func.func @main(%0: tensor<4x32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}, {}]>} loc("params['up']"),
                  %1: tensor<4x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>} loc("params['bias']"),
                  %2: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "fsdp"}, {}]>} loc("x"),
                  %3: tensor<16xi32> loc("target"), %4: tensor<3x96xf32> loc("bank"))
      -> (tensor<4x32x64xf32>, tensor<4x64xf32>) {
    %5 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {"fsdp"}]> : tensor<16x32xf32> loc("train.py":7:5)
    return %0, %1 : tensor<4x32x64xf32>, tensor<4x64xf32>
  }
}
"""


def test_parameters_stacked_for_a_loop_are_split_within_the_layer() -> None:
    reading = read(WHOLE, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(stacked(Context(Sites(reading))))
    assert [{change.site.pattern: change.spec for change in edit} for edit in edits] == [
        {"params['up']": ((), ("fsdp",), ()), "params['bias']": ((), ("fsdp",))},
        {"params['up']": ((), (), ("fsdp",)), "params['bias']": ((), ("fsdp",))},
    ]


def test_targets_are_split_as_the_batch_and_a_bank_where_axes_divide() -> None:
    """Sixteen targets beside sixteen rows over two axes; three banks of 96 columns."""
    reading = read(WHOLE, "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        first, others = list(batches(context)), list(banks(context))
    assert {change.site.pattern: change.spec for change in first[0]} == {"target": (("data", "fsdp"),)}
    assert {edit[0].site.pattern for edit in others} == {"bank"}
    assert {edit[0].spec for edit in others} >= {((), (name,)) for name in context.axes}


def test_a_constraint_that_loses_an_axis_of_the_batch_gives_up_a_part_of_the_scheme() -> None:
    """Without `data` a device has 1 KiB of the value instead of 512 bytes; on another dimension it is as before."""
    reading = read(WHOLE, "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        (site,) = context.sites.constraints
        specs = ((), ("fsdp",)), (("fsdp",), ("data",)), (("data", "fsdp"), ()), None
        assert [harm(context, (Change(site, spec),)) for spec in specs] == [512, 0, 0, 0]


HEADS = """
module @step attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["tensor"=4]>
  func.func @main(%0: tensor<32xWIDTHxf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tensor"}]>} loc("wq"),
                  %1: tensor<2x8x32xf32> loc("x")) -> tensor<2x8xHEADSx16xf32> {
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [2] x [0]
      : (tensor<2x8x32xf32>, tensor<32xWIDTHxf32>) -> tensor<2x8xWIDTHxf32>
    %3 = stablehlo.reshape %2 : (tensor<2x8xWIDTHxf32>) -> tensor<2x8xHEADSx16xf32> loc("train.py":7:5)
    return %3 : tensor<2x8xHEADSx16xf32>
  }
}
"""


@pytest.mark.parametrize(("heads", "fitting"), [(6, "4 or 8"), (2, "4"), (8, "")])
def test_heads_that_do_not_divide_are_named_with_the_numbers_that_would(heads: int, fitting: str) -> None:
    text = HEADS.replace("HEADS", str(heads)).replace("WIDTH", str(heads * 16))
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        named, elsewhere = (misfit(Sites(reading), {("train.py", line)}) for line in (7, 8))
    assert elsewhere == ""
    assert (f"{heads} is no multiple of 4, as {fitting} would be" in named) if fitting else named == ""


def test_a_reshape_that_drops_the_last_dimension_has_no_heads() -> None:
    text = """
module @step attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["tensor"=4]>
  func.func @main(%0: tensor<16x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tensor"}, {}]>}) -> tensor<16xf32> {
    %1 = stablehlo.reshape %0 : (tensor<16x1xf32>) -> tensor<16xf32> loc("train.py":7:5)
    return %1 : tensor<16xf32>
  }
}
"""
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        assert misfit(Sites(reading), {("train.py", 7)}) == ""
