"""Choices: many that are nested, and sums over devices of the negatives of choices by one integer."""

import pytest

from shardpass.proving import prove

PLACES, UPDATES = "tensor<12xi32>", "tensor<12xf32>"


def written(size, boundary, inner):
    """12 updates that are written, in their order, into a table of ``size`` of which a device has a part."""
    table, places, updates = (
        f"tensor<{n}>{boundary.format(type=g, sharding=s)}" if boundary else f"tensor<{n}>"
        for n, g, s in ((f"{size}xf32", "tensor<8xf32>", "{devices=[2]<=[2]}"), ("12xi32", PLACES, "{replicated}"),
                        ("12xf32", UPDATES, "{replicated}"))
    )  # fmt: skip
    return f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%t: {table}, %i: {places}, %u: {updates}) -> ({table}) {{
{inner}
    %r = "stablehlo.scatter"(%t, %j, %v) ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}} : (tensor<{size}xf32>, {PLACES}, {UPDATES}) -> tensor<{size}xf32>
    return %r : tensor<{size}xf32>
  }}
}}"""


SIDE = ' {{mhlo.sharding = "{{manual}}", shardpass.global_type = {type}, shardpass.sharding = "{sharding}"}}'
SAME = f"    %j = stablehlo.abs %i : {PLACES}\n    %v = stablehlo.add %u, %u : {UPDATES}"
SHIFTED = f"""    %a = stablehlo.abs %i : {PLACES}
    %d = stablehlo.partition_id : tensor<ui32>
    %e = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %m = stablehlo.multiply %e, %four : tensor<i32>
    %f = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<i32>) -> {PLACES}
    %j = stablehlo.subtract %a, %f : {PLACES}
    %v = stablehlo.add %u, %u : {UPDATES}"""
REVERSED = SHIFTED.replace("subtract %a", "subtract %b").replace(
    "    %v = stablehlo.add %u, %u",
    f"    %w = stablehlo.reverse %u, dims = [0] : {UPDATES}\n    %v = stablehlo.add %w, %w",
).replace("    %d =", f"    %b = stablehlo.reverse %a, dims = [0] : {PLACES}\n    %d =")  # fmt: skip


@pytest.mark.parametrize(("local", "proved"), [(SHIFTED, True), (REVERSED, False)])
def test_many_updates_of_unknown_places(local, proved):
    """Written in the opposite order, the first of two updates of one place stays."""
    whole = written(8, "", SAME)
    assert prove(whole, written(4, SIDE, local), refute=False).proved is proved


ROW = "tensor<4xf32>"


def picked(ops, boundary=""):
    x, i, r = (
        f"{kind}{boundary.format(type=kind, sharding='{replicated}')}" if boundary else kind
        for kind in (ROW, "tensor<i32>", "tensor<f32>")
    )
    return f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: {x}, %i: {i}) -> ({r}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
{ops}
    return %r : tensor<f32>
  }}
}}"""


def negative_of_one(op="negate", first="0", other="2"):
    """Each device takes the element of its half of the row, or zero, and the negatives are added up."""
    return f"""    %d = stablehlo.partition_id : tensor<ui32>
    %one = stablehlo.constant dense<1> : tensor<ui32>
    %second = stablehlo.compare EQ, %d, %one, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %a = stablehlo.constant dense<{first}> : tensor<i32>
    %b = stablehlo.constant dense<{other}> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %from = stablehlo.select %second, %b, %a : tensor<i1>, tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %most = stablehlo.constant dense<3> : tensor<i32>
    %k = stablehlo.clamp %none, %i, %most : tensor<i32>
    %j = stablehlo.subtract %k, %from : tensor<i32>
    %low = stablehlo.compare GE, %j, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %high = stablehlo.compare LT, %j, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %in = stablehlo.and %low, %high : tensor<i1>
    %g = stablehlo.dynamic_slice %x, %k, sizes = [1] : ({ROW}, tensor<i32>) -> tensor<1xf32>
    %h = stablehlo.reshape %g : (tensor<1xf32>) -> tensor<f32>
    %p = stablehlo.select %in, %h, %zero : tensor<i1>, tensor<f32>
    %n = stablehlo.{op} %p : tensor<f32>
    %r = "stablehlo.all_reduce"(%n) ({{
    ^bb0(%s: tensor<f32>, %t: tensor<f32>):
      %u = stablehlo.add %s, %t : tensor<f32>
      stablehlo.return %u : tensor<f32>
    }}) {{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<f32>) -> tensor<f32>"""


NEGATIVE = f"""    %g = stablehlo.dynamic_slice %x, %i, sizes = [1] : ({ROW}, tensor<i32>) -> tensor<1xf32>
    %h = stablehlo.reshape %g : (tensor<1xf32>) -> tensor<f32>
    %r = stablehlo.negate %h : tensor<f32>"""


@pytest.mark.parametrize(
    ("local", "proved"),
    [
        (negative_of_one(), True),
        (negative_of_one("cosine"), False),  # the cosine of what is not taken is added too
        (negative_of_one(other="1"), False),  # one element is taken twice, and one never
    ],
)
def test_the_negatives_of_parts_of_a_choice(local, proved):
    assert prove(picked(NEGATIVE), picked(local, SIDE), refute=False).proved is proved
