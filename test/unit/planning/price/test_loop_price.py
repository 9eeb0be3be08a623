"""When a loop pays: sums worked out by hand, under a machine of round numbers."""

from __future__ import annotations

import pytest
from support.machines import switched

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.walk import read_blocks
from shardpass.partition.matmul_loops.find import candidates
from shardpass.planning.price.loops import LoopTerms, price, resident_bytes, rounds
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.sharding import Mesh

# a tile of 4 KiB comes in 4,096 us and 1,000 us of latency; a product of 8 x 128 x 128 / 8 points takes 16,384 us
MACHINE = switched("round", latency=1e-3, bandwidth=1e6, copies=1e15, flops=2e6)


def gather(count):
    rows = 8 * count
    return f"""module attributes {{mhlo.num_partitions = {count} : i32}} {{
      func.func @main(%x: tensor<8x128xf32>, %w: tensor<128x16xf32>) -> tensor<{rows}x16xf32> {{
        %0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, use_global_device_ids,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = dense<[{list(range(count))}]> : tensor<1x{count}xi64>}}>
          : (tensor<8x128xf32>) -> tensor<{rows}x128xf32>
        %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
          : (tensor<{rows}x128xf32>, tensor<128x16xf32>) -> tensor<{rows}x16xf32>
        return %1 : tensor<{rows}x16xf32>
      }}
    }}"""


def only(count):
    module = parse_module(gather(count))
    (inside,) = read_blocks(main_of(module))
    (found,) = candidates(inside, count)
    return found, sub_axes_of(Mesh((("x", count),))), module


HOP, BLOCK = 1e-3 + 4096e-6, 8 * 128 * 16 / 1e6


@pytest.mark.parametrize(
    ("count", "both_ways", "in_turn"),
    [
        (2, False, BLOCK + max(HOP, BLOCK)),
        (4, False, BLOCK + 3 * max(HOP, BLOCK)),
        # three rounds of two blocks, and one block that is left at the other side of the ring
        (8, True, BLOCK + 3 * max(HOP, 2 * BLOCK) + max(HOP, BLOCK)),
    ],
)
def test_seconds(count, both_ways, in_turn):
    candidate, sub_axes, _module = only(count)  # the module owns the ops
    found = price(candidate.pair, MACHINE, sub_axes, both_ways)
    assert found.apart == pytest.approx(1e-3 + (count - 1) * 4096e-6 + count * BLOCK)
    assert found.in_turn == pytest.approx(in_turn)
    assert found.beside == pytest.approx(in_turn - count * BLOCK)
    pays = found.in_turn < found.apart
    for which, taken in (("off", False), ("all", True), ("memory", True), ("default", pays)):
        assert LoopTerms(which).take(candidate.pair, found) == taken


def test_rounds_compute_every_block_but_the_first():
    for count in range(2, 20):
        for both_ways in (False, True):
            assert 1 + sum(rounds(count, both_ways)) == count


def test_bytes_that_a_loop_holds():
    """Tiles of 4 KiB: the one at hand and the one that comes, each way; of two devices only the other's."""
    for count, both_ways, tiles in ((2, False, 1), (4, False, 2), (8, True, 4)):
        candidate, _, module = only(count)
        assert resident_bytes(candidate.pair, both_ways) == tiles * 4096, module


SUMS = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<2x3xf32>, %w: tensor<5x8xf32>) -> tensor<5x3xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x3xf32>) -> tensor<8x3xf32>
    %1 = stablehlo.dot_general %w, %0, contracting_dims = [1] x [0]
      : (tensor<5x8xf32>, tensor<8x3xf32>) -> tensor<5x3xf32>
    return %1 : tensor<5x3xf32>
  }
}"""


def test_a_term_of_a_sum_is_held_beside_the_sum():
    """Two tiles of 24 bytes, and 5 * 3 * 4 bytes of a term: more than the 96 bytes that would be gathered."""
    module = parse_module(SUMS)
    (inside,) = read_blocks(main_of(module))
    (found,) = candidates(inside, 4)
    assert resident_bytes(found.pair, False) == 2 * 24 + 60
    with collect() as told:
        unchanged = shardpass.run_pipeline(SUMS, "builtin.module(shardpass-collective-matmul{matmul-loops=memory})")
    assert "all_gather" in str(unchanged)
    assert [remark.code for remark in told] == ["SP311"]
