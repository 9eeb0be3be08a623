"""What is told to XLA of a per-device program."""

from __future__ import annotations

import numpy as np
import pytest

import shardpass
from shardpass.cost.collective import KINDS
from shardpass.ir.annotations import MANUAL, SHARDING, custom_call_target, get_text
from shardpass.ir.for_xla import free_layouts
from shardpass.ir.tensors import every_op, operation

GROUPS = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
SUM = """({
          ^bb0(%u: tensor<f32>, %z: tensor<f32>):
            %w = stablehlo.add %u, %z : tensor<f32>
            stablehlo.return %w : tensor<f32>
          })"""
# every kind of collective, in a loop that carries its numbers beside what is asked for, and made of nothing
OF_NOTHING = f"""
module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
        manual_axes={{"x"}} (%a: tensor<2x8xf32>) {{
      %i = stablehlo.iota dim = 0 : tensor<4x8xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<3> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %l:3 = stablehlo.while(%k = %c, %v = %i, %y = %a) : tensor<i32>, tensor<4x8xf32>, tensor<2x8xf32>
       cond {{
        %q = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      }} do {{
        %g = "stablehlo.all_gather"(%v) <{{all_gather_dim = 1 : i64, {GROUPS}, use_global_device_ids,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}>
          : (tensor<4x8xf32>) -> tensor<4x32xf32>
        %p = "stablehlo.collective_permute"(%g) <{{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}}>
          : (tensor<4x32xf32>) -> tensor<4x32xf32>
        %r = "stablehlo.all_reduce"(%p) <{{{GROUPS}, use_global_device_ids,
          channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}}> {SUM}
          : (tensor<4x32xf32>) -> tensor<4x32xf32>
        %t = "stablehlo.all_to_all"(%r) <{{concat_dimension = 1 : i64, split_count = 4 : i64, split_dimension = 0 : i64,
          {GROUPS}, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>}}>
          : (tensor<4x32xf32>) -> tensor<1x128xf32>
        %s = "stablehlo.reduce_scatter"(%t) <{{scatter_dimension = 1 : i64, {GROUPS}, use_global_device_ids,
          channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>}}> {SUM}
          : (tensor<1x128xf32>) -> tensor<1x32xf32>
        %h = stablehlo.reshape %s : (tensor<1x32xf32>) -> tensor<4x8xf32>
        %k1 = stablehlo.add %k, %one : tensor<i32>
        %y1 = stablehlo.add %y, %y : tensor<2x8xf32>
        stablehlo.return %k1, %h, %y1 : tensor<i32>, tensor<4x8xf32>, tensor<2x8xf32>
      }}
      sdy.return %l#2 : tensor<2x8xf32>
    }} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }}
}}
"""


def marks(module: object) -> dict[str, set[str | None]]:
    """What each kind of collective, and partition_id, says of its sharding."""
    found: dict[str, set[str | None]] = {}
    for op in every_op(operation(module)):
        kind = op.name.removeprefix("stablehlo.")
        if kind in (*KINDS, "partition_id"):
            found.setdefault(kind, set()).add(get_text(op, SHARDING))
    return found


def test_collectives_of_nothing_say_that_they_are_manual() -> None:
    module = shardpass.run_pipeline(OF_NOTHING, "partition")
    kinds = {"all_gather", "collective_permute", "all_reduce", "all_to_all", "reduce_scatter"}
    found = marks(module.operation)
    assert set(found) == kinds
    assert MANUAL in set().union(*found.values())
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(shardpass.compile(module)(x)[0], 8 * x)


SUMS = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
      %w: tensor<16x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %y: tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
      -> (tensor<4x8xf32> {mhlo.sharding = "{replicated}"}, tensor<10xf32> {mhlo.sharding = "{replicated}"}, tensor<4x4xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.slice %w [0:4, 0:4] : (tensor<16x4xf32>) -> tensor<4x4xf32>
    return %1, %y, %2 : tensor<4x8xf32>, tensor<10xf32>, tensor<4x4xf32>
  }
}
"""  # noqa: E501  IR is not wrapped


def test_what_an_argument_reaches_is_left_as_it_is() -> None:
    """Shardy of jaxlib 0.12 aborts on marks that it does not need."""
    found = marks(shardpass.run_pipeline(SUMS, "partition").operation)
    assert found.pop("partition_id", {MANUAL}) == {MANUAL}
    assert "all_reduce" in found
    assert set().union(*found.values()) == {None}


GATHERED = """
module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8x2x4xcomplex<f32>> {{
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{axes}]>] out_shardings=[<@mesh, [{{}}, {{}}, {{}}, {{}}]>]
        manual_axes={{"x"}} (%a: tensor<{tile}xf32>) {{
      %b = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<{tile}xf32>) -> tensor<{tile}x2x6xf32>
      %c = stablehlo.fft %b, type = RFFT, length = [2, 6]
        : (tensor<{tile}x2x6xf32>) -> tensor<{tile}x2x4xcomplex<f32>>
      %g = "stablehlo.all_gather"(%c) <{{all_gather_dim = {dim} : i64, use_global_device_ids,
        replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}>
        : (tensor<{tile}x2x4xcomplex<f32>>) -> tensor<8x8x2x4xcomplex<f32>>
      sdy.return %g : tensor<8x8x2x4xcomplex<f32>>
    }} : (tensor<8x8xf32>) -> tensor<8x8x2x4xcomplex<f32>>
    return %0 : tensor<8x8x2x4xcomplex<f32>>
  }}
}}
"""


@pytest.mark.parametrize(("dim", "tile", "axes"), [(0, "2x8", '{"x"}, {}'), (1, "8x2", '{}, {"x"}')])
def test_an_fft_is_held_row_major_where_a_collective_wants_another_layout(dim: int, tile: str, axes: str) -> None:
    module = shardpass.run_pipeline(GATHERED.format(dim=dim, tile=tile, axes=axes), "partition")
    held = [op for op in every_op(operation(module.operation)) if custom_call_target(op) == "LayoutConstraint"]
    assert len(held) == dim  # gathered along the leading dimension, nothing wants another
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    expected = np.fft.rfft2(np.broadcast_to(x[..., None, None], (8, 8, 2, 6)))
    np.testing.assert_allclose(shardpass.compile(module)(x)[0], expected, rtol=1e-5, atol=1e-3)
    with module.context:
        free_layouts(module)  # as for a TPU, whose compiler refuses such calls
    assert not [op for op in every_op(operation(module.operation)) if custom_call_target(op) == "LayoutConstraint"]
