"""A loss of entries looked up in split rows: each device sums its own, one all_reduce adds what the devices have."""

import re

import pytest

from shardpass.proving import prove
from test.unit.proving.pairs import local_text, side, whole_text

ROWS = side("tensor<4x6xf32>", "tensor<2x3xf32>", "{devices=[2,2]<=[4]}")
AT = side("tensor<4xi32>", "tensor<2xi32>", "{devices=[2,2]<=[4] last_tile_dim_replicate}")
LOOKUP = """<{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0],
  start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false,
  slice_sizes = array<i64: 1, 1>}}> : (tensor<{0}x{1}xf32>, tensor<{0}x1xi32>) -> tensor<{0}xf32>"""
ADD = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""
WHOLE = f"""
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<4xf32>
    %low = stablehlo.constant dense<0> : tensor<4xi32>
    %high = stablehlo.constant dense<5> : tensor<4xi32>
    %above = stablehlo.compare GE, %x1, %low, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %below = stablehlo.compare LE, %x1, %high, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %inside = stablehlo.and %above, %below : tensor<4xi1>
    %at = stablehlo.clamp %low, %x1, %high : tensor<4xi32>
    %index = stablehlo.reshape %at : (tensor<4xi32>) -> tensor<4x1xi32>
    %found = "stablehlo.gather"(%x0, %index) {LOOKUP.format(4, 6)}
    %chosen = stablehlo.select %inside, %found, %nan : tensor<4xi1>, tensor<4xf32>
    %r = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""
LOCAL = f"""
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %minus = stablehlo.constant dense<-0.0> : tensor<f32>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<2xf32>
    %nothing = stablehlo.constant dense<0.0> : tensor<2xf32>
    %low = stablehlo.constant dense<0> : tensor<2xi32>
    %high = stablehlo.constant dense<5> : tensor<2xi32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %width = stablehlo.constant dense<3> : tensor<2xi32>
    %id = stablehlo.partition_id : tensor<ui32>
    %rest = stablehlo.remainder %id, %two : tensor<ui32>
    %column = stablehlo.convert %rest : (tensor<ui32>) -> tensor<i32>
    %number = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %above = stablehlo.compare GE, %x1, %low, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %below = stablehlo.compare LE, %x1, %high, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %inside = stablehlo.and %above, %below : tensor<2xi1>
    %at = stablehlo.clamp %low, %x1, %high : tensor<2xi32>
    %first = stablehlo.multiply %column, %three : tensor<i32>
    %starts = stablehlo.broadcast_in_dim %first, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %own = stablehlo.subtract %at, %starts : tensor<2xi32>
    %from = stablehlo.compare GE, %own, %low, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %to = stablehlo.compare LT, %own, %width, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %here = stablehlo.and %from, %to : tensor<2xi1>
    %index = stablehlo.reshape %own : (tensor<2xi32>) -> tensor<2x1xi32>
    %found = "stablehlo.gather"(%x0, %index) {LOOKUP.format(2, 3)}
    %masked = stablehlo.select %here, %found, %nothing : tensor<2xi1>, tensor<2xf32>
    %is_first = stablehlo.compare EQ, %column, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %outside = stablehlo.select %is_first, %nan, %nothing : tensor<i1>, tensor<2xf32>
    %chosen = stablehlo.select %inside, %masked, %outside : tensor<2xi1>, tensor<2xf32>
    %part = stablehlo.reduce(%chosen init: %minus) applies stablehlo.add across dimensions = [0]
      : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %is_zeroth = stablehlo.compare EQ, %number, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %start = stablehlo.select %is_zeroth, %zero, %minus : tensor<i1>, tensor<f32>
    %sum = stablehlo.add %start, %part : tensor<f32>
    %r = "stablehlo.all_reduce"(%sum) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 2, 1, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> {ADD}
      : (tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""
WRONG = {
    "rows of one device only": ("[[0, 2, 1, 3]]> : tensor<1x4xi64>", "[[0, 2], [1, 3]]> : tensor<2x2xi64>"),
    "columns of one device only": ("[[0, 2, 1, 3]]> : tensor<1x4xi64>", "[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "lookups that no mask ends": ("select %here, %found, %nothing", "select %from, %found, %nothing"),
    "another predicate in each column": ("select %inside, %masked", "select %here, %masked"),
    "a start that is not 0": ("%zero = stablehlo.constant dense<0.0>", "%zero = stablehlo.constant dense<1.0>"),
    "a start from which the sums of devices begin": ("%chosen init: %minus", "%chosen init: %one"),
    "rows that start elsewhere": ("%three = stablehlo.constant dense<3>", "%three = stablehlo.constant dense<2>"),
}


MANY = 2**20  # rows: more elements than are worth a proof of each


def proof_of(local, rows=4):
    """The verdict with ``rows`` rows in place of 4."""
    sides = [ROWS, AT], [side("tensor<f32>")]
    one, other = whole_text(WHOLE, *sides), local_text(local, *sides, devices=4)
    for old, new in ((4, rows), (2, rows // 2)):
        one, other = (re.sub(rf"tensor<{old}x(?!\d+xi64)", f"tensor<{new}x", text) for text in (one, other))
    return prove(one, other, refute=rows == 4)


@pytest.mark.parametrize("rows", [4, MANY])
def test_the_sum_is_proved(rows):
    assert proof_of(LOCAL, rows).proved


@pytest.mark.parametrize("rows", [4, MANY])
@pytest.mark.parametrize("fault", WRONG)
def test_faults_are_not_proved(fault, rows):
    old, new = WRONG[fault]
    assert LOCAL.count(old) == 1
    assert not proof_of(LOCAL.replace(old, new), rows).proved
