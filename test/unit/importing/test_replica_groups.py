"""Replica groups by mesh axes, as JAX 0.12 prints them, written out by hand."""

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.importing.read_sdy import import_sdy
from shardpass.ir.context import parse_module

MODULE = """module {{
  sdy.mesh @m = <["a"=4, "b"=2]{ids}>
  func.func @main(%x: tensor<4xf32>) -> tensor<{size}xf32> {{
    %0 = "stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64, use_global_device_ids,
      replica_groups = {groups}, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}
      : (tensor<4xf32>) -> tensor<{size}xf32>
    return %0 : tensor<{size}xf32>
  }}
}}"""


def by_axes(*axes):
    return f"#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [{', '.join(axes)}]>"


A, B = '#stablehlo.axis_ref<name = "a">', '#stablehlo.axis_ref<name = "b">'
A_MAJOR = '#stablehlo.axis_ref<name = "a", sub_axis_info = (1)2>'
A_MINOR = '#stablehlo.axis_ref<name = "a", sub_axis_info = (2)2>'
# device = 2 a + b
CASES = [
    (by_axes(B), [[0, 1], [2, 3], [4, 5], [6, 7]]),
    (by_axes(A), [[0, 2, 4, 6], [1, 3, 5, 7]]),
    (by_axes(A_MINOR), [[0, 2], [1, 3], [4, 6], [5, 7]]),
    (by_axes(A_MAJOR), [[0, 4], [1, 5], [2, 6], [3, 7]]),
    (by_axes(B, A), [[0, 2, 4, 6, 1, 3, 5, 7]]),
    ("dense<[[3, 2, 1, 0], [4, 5, 6, 7]]> : tensor<2x4xi64>", [[3, 2, 1, 0], [4, 5, 6, 7]]),
]


def groups(text, size, ids=""):
    module = parse_module(MODULE.format(groups=text, size=4 * size, ids=ids))
    with module.context, ir.Location.unknown():
        import_sdy(module)
    assert module.operation.verify()
    (op, _) = module.body.operations[0].regions[0].blocks[0].operations
    return sorted(np.array(op.attributes["replica_groups"]).tolist())


@pytest.mark.parametrize(("text", "rows"), CASES)
def test_written_out(text, rows):
    assert groups(text, len(rows[0])) == sorted(rows)


def test_device_order_of_the_mesh():
    # mesh position p holds device 7 - p
    found = groups(by_axes(B), 2, ", device_ids=[7, 6, 5, 4, 3, 2, 1, 0]")
    assert found == [[1, 0], [3, 2], [5, 4], [7, 6]]
