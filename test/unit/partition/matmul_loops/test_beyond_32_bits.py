"""Blocks of a product whose places 32 bits do not hold: evaluated at chosen elements."""

from __future__ import annotations

import pytest
from support.elements import Elements

import shardpass


@pytest.mark.parametrize("tile", [2**30 - 1, 2**30, 2**31 + 1, 2**34 + 5])
def test_rows_that_are_gathered(tile: int) -> None:
    """Each of two devices has half of the rows; row g of the whole is g, so that the product is g times the columns."""
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids"
    text = f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func @main(%x: tensor<{tile}x1xi64>, %w: tensor<1x2xi64>) -> tensor<{2 * tile}x2xi64> {{
        %0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {groups},
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}>
          : (tensor<{tile}x1xi64>) -> tensor<{2 * tile}x1xi64>
        %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
          : (tensor<{2 * tile}x1xi64>, tensor<1x2xi64>) -> tensor<{2 * tile}x2xi64>
        return %1 : tensor<{2 * tile}x2xi64>
      }}
    }}"""
    module = shardpass.run_pipeline(text, "shardpass-collective-matmul{matmul-loops=all}")
    found = Elements(module, [lambda d, i: d * tile + i[0], lambda d, i: 3 + 4 * i[1]])
    assert found.ops("stablehlo.collective_permute")
    for g in (0, 1, tile - 1, tile, tile + 1, 2 * tile - 1):
        for device in (0, 1):
            assert [found.result(device, (g, 0)), found.result(device, (g, 1))] == [3 * g, 7 * g]
