"""Programs that cannot be partitioned are refused at import, with the op and its place."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.importing.refuse_unsupported import DYNAMIC_OPS, TRANSFERS
from shardpass.ops.families.replicated import DYNAMIC

HEAD = "module attributes {mhlo.num_partitions = 2 : i32} {\n"


def refused(text: str) -> list[tuple[str, str, int]]:
    """(code, message, line) of everything that is wrong with ``text``."""
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(HEAD + text + "\n}", "import")
    return [(d.code, d.message, d.place.line) for d in caught.value.diagnostics]


# One program for each op of a dynamic shape; the op stands on line 3.
CALLS = {
    "dynamic_broadcast_in_dim": (
        '%0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %i) <{broadcast_dimensions = array<i64: 1>}> '
        ": (tensor<4xf32>, tensor<2xi32>) -> tensor<3x4xf32>"
    ),
    "dynamic_iota": (
        '%0 = "stablehlo.dynamic_iota"(%i) <{iota_dimension = 0 : i64}> : (tensor<2xi32>) -> tensor<3x4xf32>'
    ),
    "dynamic_reshape": '%0 = "stablehlo.dynamic_reshape"(%x, %i) : (tensor<4xf32>, tensor<2xi32>) -> tensor<2x2xf32>',
    "dynamic_pad": (
        '%0 = "stablehlo.dynamic_pad"(%x, %s, %j, %j, %j) '
        ": (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32>"
    ),
    "real_dynamic_slice": (
        '%0 = "stablehlo.real_dynamic_slice"(%x, %j, %j, %j) '
        ": (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>"
    ),
    "dynamic_gather": (
        '%0 = "stablehlo.dynamic_gather"(%x, %i, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> "
        ": (tensor<4xf32>, tensor<2xi32>, tensor<1xi32>) -> tensor<2xf32>"
    ),
    "dynamic_conv": (
        '%0 = "stablehlo.dynamic_conv"(%c, %c, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, '
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[i, 0, o]->[b, 0, f]>}> "
        ": (tensor<1x4x1xf32>, tensor<1x4x1xf32>, tensor<1x2xi32>) -> tensor<1x4x1xf32>"
    ),
    "set_dimension_size": (
        '%0 = "stablehlo.set_dimension_size"(%x, %n) <{dimension = 0 : i64}> '
        ": (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>"
    ),
}


def test_every_op_of_a_dynamic_shape_has_a_program_here() -> None:
    assert set(CALLS) == set(DYNAMIC) == {name.removeprefix("stablehlo.") for name in DYNAMIC_OPS}


@pytest.mark.parametrize("name", CALLS)
def test_ops_of_dynamic_shapes(name: str) -> None:
    """With static types all round: the operand that says the shape is not looked at, so the op is refused."""
    arguments = (
        "%x: tensor<4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<1xi32>, %n: tensor<i32>, "
        "%c: tensor<1x4x1xf32>, %p: tensor<1x2xi32>"
    )
    text = f"func.func @main({arguments}) -> tensor<4xf32> {{\n  {CALLS[name]}\n  return %x : tensor<4xf32>\n}}"
    ((code, message, line),) = refused(text)
    assert (code, line) == ("SP223", 3)
    assert f"stablehlo.{name} " in message


@pytest.mark.parametrize(
    "kind",
    [
        "tensor<?xf32>",
        "tensor<2x?xi32>",
        "tensor<*xf32>",
        "tensor<?xf32, #stablehlo.bounds<4>>",
        "tuple<tensor<?xf32>>",
    ],
)
def test_shapes_that_are_not_static(kind: str) -> None:
    call = f"%0 = stablehlo.custom_call @f(%x) : ({kind}) -> {kind}"
    text = f"func.func @main(%x: {kind}) -> {kind} {{\n  {call}\n  return %0 : {kind}\n}}"
    found = refused(text)
    assert [code for code, _, _ in found] == ["SP211", "SP211"]
    assert {
        name for _, message, _ in found for name in ("an argument", "stablehlo.custom_call") if name in message
    } == {
        "an argument",
        "stablehlo.custom_call",
    }
    assert all(kind in message for _, message, _ in found)


def test_dynamic_shapes_in_regions_and_callees_are_found() -> None:
    text = """
func.func private @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.custom_call @g(%x) : (tensor<4xf32>) -> tensor<?xf32>
    stablehlo.return %x : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    assert [(code, line) for code, _, line in refused(text)] == [("SP211", 3), ("SP211", 6)]


@pytest.mark.parametrize(
    "kind",
    [
        "memref<4xf32>", "vector<4xf32>", "tensor<4xindex>", "index", "f32", "complex<f32>", "none", "tensor<4xi17>",
        "tensor<4xi128>", "tensor<4xtf32>", "tensor<4xf80>", "tensor<4xf128>", "tensor<4xf6E2M3FN>",
        "tensor<4xcomplex<f16>>", "tensor<4xvector<2xf32>>", "!stablehlo.future<tensor<4xf32>>", "tuple<memref<4xf32>>",
    ],
)  # fmt: skip
def test_types_that_xla_does_not_take(kind: str) -> None:
    ((code, message, line),) = refused(f"func.func @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}")
    assert (code, line) == ("SP224", 2)
    assert f"an argument has the type {kind}," in message


@pytest.mark.parametrize(
    ("kind", "op"),
    [
        ("!stablehlo.token", "stablehlo.custom_call @mine(%x) : (!stablehlo.token) -> ()"),  # a callback may take one
        ("tuple<tensor<4xf32>, tensor<i32>>", ""),
    ],
)
def test_main_takes_and_gives_arrays(kind: str, op: str) -> None:
    found = refused(f"func.func @main(%x: {kind}) -> {kind} {{ {op} return %x : {kind} }}")
    assert [code for code, _, _ in found] == ["SP225", "SP225"]
    assert found[0][1].startswith(f"argument 0 of @main has the type {kind}")
    assert found[1][1].startswith(f"result 0 of @main has the type {kind}")


def test_tokens_and_tuples_inside_are_taken() -> None:
    """A barrier over an array and a token; a tuple taken apart again."""
    text = """
func.func @main(%x: tensor<6xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<6xf32>, tensor<6xf32>) {
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t, %t : !stablehlo.token
  %0:2 = stablehlo.optimization_barrier %x, %u : tensor<6xf32>, !stablehlo.token
  %1 = stablehlo.tuple %x, %0#0 : tuple<tensor<6xf32>, tensor<6xf32>>
  %2 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<6xf32>, tensor<6xf32>>) -> tensor<6xf32>
  return %0#0, %2 : tensor<6xf32>, tensor<6xf32>
}"""
    x = np.arange(6, dtype=np.float32)
    seen = check_text(HEAD + text + "\n}", [x])
    for found in shardpass.compile(seen.module)(x):
        np.testing.assert_array_equal(np.asarray(found), x)


OUTSIDE = """
func.func @main(%x: tensor<4xf32> {{mhlo.sharding = "{{devices=[2]<=[2]}}"}}) -> tensor<4xf32> {{
  {op}
  return %x : tensor<4xf32>
}}"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ONE_DEVICE = {
    "partition_id": (
        "%0 = stablehlo.partition_id : tensor<ui32>\n  %1 = stablehlo.custom_call @f(%0) {has_side_effect = true} "
        ": (tensor<ui32>) -> tensor<ui32>"
    ),
    "all_gather": (
        f'%0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {CHANNEL}, '
        "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>"
    ),
    "collective_permute": (
        f'%0 = "stablehlo.collective_permute"(%x) <{{{CHANNEL}, '
        "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>"
    ),
}


@pytest.mark.parametrize("name", ONE_DEVICE)
def test_what_differs_from_device_to_device_is_for_manual_regions(name: str) -> None:
    ((code, message, _),) = refused(OUTSIDE.format(op=ONE_DEVICE[name]))
    assert code == "SP226"
    assert message.startswith(f"stablehlo.{name} is outside of a manual region")


def test_a_device_id_that_nothing_uses_is_taken() -> None:
    text = OUTSIDE.format(op="%0 = stablehlo.partition_id : tensor<ui32>")
    shardpass.run_pipeline(HEAD + text + "\n}", "import")


def test_collectives_over_replicas_are_taken() -> None:
    """Without a channel a collective is over replicas, of which there is one."""
    op = """%0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>"""
    shardpass.run_pipeline(HEAD + OUTSIDE.format(op=op) + "\n}", "import")


TRANSFER_CALLS = {
    "infeed": (
        '%0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)'
    ),
    "outfeed": (
        '%0 = "stablehlo.outfeed"(%x, %t) <{outfeed_config = ""}> '
        ": (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token"
    ),
    "send": (
        '%0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, '
        "is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token"
    ),
    "recv": (
        '%0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, '
        "is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)"
    ),
}


@pytest.mark.parametrize("name", TRANSFER_CALLS)
def test_transfers_to_the_host(name: str) -> None:
    assert {f"stablehlo.{n}" for n in TRANSFER_CALLS} == set(TRANSFERS)
    op = "%t = stablehlo.create_token : !stablehlo.token\n  " + TRANSFER_CALLS[name]
    ((code, message, _),) = refused(OUTSIDE.format(op=op))
    assert code == "SP227"
    assert message.startswith(f"stablehlo.{name} moves data")


def test_ops_of_other_dialects() -> None:
    ((code, message, _),) = refused(OUTSIDE.format(op="%0 = math.sin %x : tensor<4xf32>"))
    assert code == "SP228"
    assert message.startswith("math.sin belongs to a dialect")


def test_dialects_that_xla_knows_are_taken() -> None:
    ops = "%0 = arith.constant dense<1.0> : tensor<4xf32>\n  %1 = mhlo.add %0, %x : tensor<4xf32>"
    text = OUTSIDE.format(op=ops).replace("return %x", "return %1")
    x = np.arange(4, dtype=np.float32)
    seen = check_text(HEAD + text + "\n}", [x])
    np.testing.assert_array_equal(np.asarray(shardpass.compile(seen.module)(x)[0]), x + 1)
