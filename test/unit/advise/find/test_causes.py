"""Causes without an edit: each in a small program with the collectives that XLA makes of it, by hand."""

from __future__ import annotations

import pytest

from shardpass.advise.find.causes import Cause, causes
from shardpass.advise.find.propose.program import Context
from shardpass.advise.place.sites import Sites, read
from shardpass.diagnostics import Place
from shardpass.report.naming import Sources
from shardpass.report.rows import BACKWARD, Row

MODULE = """
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main({arguments}) -> {results} {{
{body}
  }}
}}
"""
MIB = 1 << 20


def found(arguments: str, results: str, body: str, *rows: Row, memory: int = 1 << 40) -> list[Cause]:
    text = MODULE.format(arguments=arguments, results=results, body=body)
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        return causes(Context(Sites(reading)), rows, memory)


def row(kind: str, names: str, line: int, result: str, times: int = 1, **more: str) -> Row:
    return Row(
        kind, ("data",), 4, MIB, result=result, names=names, place=Place("train.py", line, 5), times=times, **more
    )


JOINED = (
    '%0: tensor<16x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>} loc("x")',
    "tensor<512x8xf32>",
    """    %1 = stablehlo.reshape %0 : (tensor<16x32x8xf32>) -> tensor<512x8xf32>
      loc("jit(step)/reshape"("train.py":7:5))
    return %1 : tensor<512x8xf32>""",
)


def test_a_reshape_that_joins_what_devices_share() -> None:
    gather = row("all_gather", "jit(step)/reshape", 7, "tensor<16x32x8xf32>", array="x")
    (one,) = found(*JOINED, gather)
    assert (one.place.line, one.bytes) == (7, MIB)
    assert "dimension of `x` that data splits" in one.sentence


def test_what_costs_little_of_all_is_no_cause() -> None:
    gather = row("all_gather", "jit(step)/reshape", 7, "tensor<16x32x8xf32>")
    others = [row("all_reduce", "jit(step)/dot_general", line, "tensor<8x8xf32>") for line in range(20, 27)]
    assert not found(*JOINED, gather, *others)  # an eighth


@pytest.mark.parametrize(
    ("is_state", "rows", "is_cause"), [(True, "%3", False), (False, "%1", False), (False, "%3", True)]
)
def test_rows_of_a_batch_in_computed_order(is_state: bool, rows: str, is_cause: bool) -> None:
    """A table is a state, or its rows are an argument as tokens are; its rows are summed wherever it is split."""
    values, types = ("%2, %0", "tensor<16x8xf32>, tensor<64x8xf32>") if is_state else ("%2", "tensor<16x8xf32>")
    body = f"""    %3 = stablehlo.iota dim = 0 : tensor<16x1xi32>
    %2 = "stablehlo.gather"(%0, {rows}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}}> :
      (tensor<64x8xf32>, tensor<16x1xi32>) -> tensor<16x8xf32> loc("jit(step)/gather"("train.py":9:5))
    return {values} : {types}"""
    arguments = """%0: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
                   %1: tensor<16x1xi32> loc("rows")"""
    sent = row("all_reduce", "jit(step)/gather", 9, "tensor<16x8xf32>", array="x")
    assert len(found(arguments, f"({types})", body, sent)) == is_cause


LOOP = """    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<4> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
    %r:2 = stablehlo.while(%i = %c, %acc = %zero) : tensor<i32>, tensor<8x4xf32> cond {{
      %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %g = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] :
        (tensor<64x8xf32>, tensor<64x4xf32>) -> tensor<8x4xf32> loc("transpose(jvp())/dot_general"("train.py":5:5))
      %s = stablehlo.{combine} %acc, %g : tensor<8x4xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %s : tensor<i32>, tensor<8x4xf32>
    }}
    return %r#1 : tensor<8x4xf32>"""


@pytest.mark.parametrize(("combine", "costs"), [("add", [3 * MIB]), ("multiply", [])])
def test_gradients_that_are_summed_in_each_trip(combine: str, costs: list[int]) -> None:
    """Of four sums of 1 MiB, one is enough where the loop adds up; where it multiplies, each is needed."""
    arguments = """%0: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
                   %1: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("y")"""
    summed = row("all_reduce", "transpose(jvp())/dot_general", 5, "tensor<8x4xf32>", times=4, direction=BACKWARD)
    body = LOOP.format(combine=combine)
    assert [one.bytes for one in found(arguments, "tensor<8x4xf32>", body, summed)] == costs


def test_heads_that_are_repeated_before_they_are_sent() -> None:
    """Two heads become eight, and a cast doubles them: an eighth of what is sent would do."""
    arguments = '%0: tensor<64x2x16xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}]>} loc("keys")'
    body = """    %1 = stablehlo.convert %0 : (tensor<64x2x16xbf16>) -> tensor<64x2x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 3] : (tensor<64x2x16xf32>) -> tensor<64x2x4x16xf32>
    %3 = stablehlo.dot_general %2, %2, contracting_dims = [0] x [0] :
      (tensor<64x2x4x16xf32>, tensor<64x2x4x16xf32>) -> tensor<2x4x16x2x4x16xf32>
      loc("jit(step)/dot_general"("train.py":8:5))
    return %3 : tensor<2x4x16x2x4x16xf32>"""
    sent = row("all_gather", "jit(step)/dot_general", 8, "tensor<64x2x4x16xf32>", array="keys")
    (one,) = found(arguments, "tensor<2x4x16x2x4x16xf32>", body, sent)
    assert one.bytes == MIB * 7 // 8


def test_a_bias_that_is_repeated_beside_what_is_sent() -> None:
    """Either operand of the sum has as many elements as what is sent; the large one is made of nothing smaller."""
    arguments = """%0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %1: tensor<32xf32> loc("bias")"""
    body = """    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
    %3 = stablehlo.add %0, %2 : tensor<64x32xf32> loc("jit(step)/add"("train.py":8:5))
    return %3 : tensor<64x32xf32>"""
    sent = row("all_gather", "jit(step)/add", 8, "tensor<64x32xf32>", array="x")
    assert found(arguments, "tensor<64x32xf32>", body, sent) == []


@pytest.mark.parametrize("other", ["data", "model"])
def test_a_large_array_with_a_size_that_an_axis_of_its_kind_does_not_divide(other: str) -> None:
    arguments = f"""
      %0: tensor<16x6x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"model"}}, {{}}, {{}}]>}} loc("cache"),
      %1: tensor<16x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"{other}"}}, {{}}]>}} loc("other")"""
    types, body = "tensor<16x6x32xf32>, tensor<16x8xf32>", "    return %0, %1 : tensor<16x6x32xf32>, tensor<16x8xf32>"
    cost = 16 * 6 * 32 * 4 // 2 * 3 // 4  # half of it is on each device; a quarter of that would do
    made = found(arguments, f"({types})", body, memory=cost * 2)
    assert [one.memory for one in made] == ([cost] if other == "data" else [])
    assert all("dimension 1 is 6, no multiple of 4" in one.sentence for one in made)
    assert not found(arguments, f"({types})", body, memory=cost * 20)


REGION = """    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{{"data"}}, {{}}]>]
        out_shardings=[<@mesh, {out}>] manual_axes={{"data", "model"}} (%a: tensor<8x16xf32>) {{
{body}
      sdy.return %r : {kind}
    }} : (tensor<32x16xf32>) -> {result} loc("train.py":7:5)
{after}
    return %2 : {result}"""
SUM = """      %r = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%b: tensor<f32>, %c: tensor<f32>):
        %d = stablehlo.add %b, %c : tensor<f32>
        stablehlo.return %d : tensor<f32>
      }) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("jit(step)/shard_map/psum"("train.py":5:5))"""
GATHER = """      %g = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64,
        replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> :
        (tensor<8x16xf32>) -> tensor<32x16xf32> loc("jit(step)/shard_map/all_gather"("train.py":5:5))
      %s = stablehlo.multiply %g, %g : tensor<32x16xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %n = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0, 1] :
        (tensor<32x16xf32>, tensor<f32>) -> tensor<f32>"""
ROWS = '%0: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x")'


@pytest.mark.parametrize("axes", ['{"data"}', "{}"])
def test_a_sum_of_which_each_device_uses_a_part(axes: str) -> None:
    after = f"    %2 = sdy.sharding_constraint %1 <@mesh, [{axes}, {{}}]> : tensor<8x16xf32>"
    body = REGION.format(out="[{}, {}]", body=SUM, kind="tensor<8x16xf32>", result="tensor<8x16xf32>", after=after)
    sent = row("all_reduce", "jit(step)/shard_map/psum", 5, "tensor<8x16xf32>")
    causes_of = found(ROWS, "tensor<8x16xf32>", body, sent)
    assert [(one.place.line, one.bytes) for one in causes_of] == ([(5, MIB // 2)] if axes != "{}" else [])
    assert all("psum_scatter" in one.advice for one in causes_of)


@pytest.mark.parametrize("is_used", [False, True])
def test_an_array_that_is_gathered_and_only_reduced(is_used: bool) -> None:
    """``is_used``: the body returns the gathered array beside the norm."""
    returned = "%g" if is_used else "%n"
    kind = "tensor<32x16xf32>" if is_used else "tensor<f32>"
    out = "[{}, {}]" if is_used else "[]"
    after = f"    %2 = stablehlo.negate %1 : {kind}"
    body = REGION.format(out=out, body=GATHER, kind=kind, result=kind, after=after).replace("%r :", f"{returned} :")
    sent = row("all_gather", "jit(step)/shard_map/all_gather", 5, "tensor<32x16xf32>")
    causes_of = found(ROWS, kind, body, sent)
    assert ["only reduced" in one.sentence for one in causes_of] == [True] * (not is_used)


IN_A_LOOP = """      %i = stablehlo.constant dense<0> : tensor<i32>
      %e = stablehlo.constant dense<0.0> : tensor<f32>
      %l:2 = stablehlo.while(%j = %i, %m = %e) : tensor<i32>, tensor<f32>
      cond {
        %k = stablehlo.constant dense<3> : tensor<i32>
        %p = stablehlo.compare LT, %j, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
BODY
        %o = stablehlo.constant dense<1> : tensor<i32>
        %q = stablehlo.add %j, %o : tensor<i32>
        %t = stablehlo.add %m, %n : tensor<f32>
        stablehlo.return %q, %t : tensor<i32>, tensor<f32>
      }"""


@pytest.mark.parametrize("elements", [512, 256])
def test_a_gather_in_a_loop_is_told_by_its_size(elements: int) -> None:
    body = REGION.format(
        out="[]",
        body=IN_A_LOOP.replace("BODY", GATHER),
        kind="tensor<f32>",
        result="tensor<f32>",
        after="    %2 = stablehlo.negate %1 : tensor<f32>",
    )
    sent = row("all_gather", "jit(step)/shard_map/while/body/all_gather", 5, f"tensor<{elements}xf32>", times=3)
    causes_of = found(ROWS, "tensor<f32>", body.replace("%r :", "%l#1 :"), sent)
    assert ["only reduced" in one.sentence for one in causes_of] == [True] * (elements == 512)


def test_a_product_with_other_arrays_is_no_reduction() -> None:
    dot = "stablehlo.dot_general %g, %w, contracting_dims = [0] x [0] : "
    dot += "(tensor<32x16xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>"
    body = GATHER.replace("stablehlo.multiply %g, %g : tensor<32x16xf32>", dot).replace(
        "(tensor<32x16xf32>, tensor<f32>)", "(tensor<16x32xf32>, tensor<f32>)"
    )
    body = "      %w = stablehlo.constant dense<1.0> : tensor<32x32xf32>\n" + body
    body = REGION.format(
        out="[]",
        body=body,
        kind="tensor<f32>",
        result="tensor<f32>",
        after="    %2 = stablehlo.negate %1 : tensor<f32>",
    )
    sent = row("all_gather", "jit(step)/shard_map/all_gather", 5, "tensor<32x16xf32>")
    assert not found(ROWS, "tensor<f32>", body.replace("%r :", "%n :"), sent)
