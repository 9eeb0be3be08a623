"""Flops and bytes of an op under a split, by arithmetic."""

from __future__ import annotations

import pytest
from support.programs import read

from shardpass.cost.machine import Work
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Axes, Rule
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.borders import Borders, borders
from shardpass.planning.work import least_work_of, work_of
from shardpass.program.program import Array
from shardpass.sharding import Mesh

HEAD = "module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n  func.func public @main"


def case(signature: str, body: str, name: str) -> tuple[Rule, list[Array], list[Array], Borders]:
    """The one op called ``name``: its rule, operands, results and borders."""
    program = read(f"{HEAD}{signature} {{\n{body}\n  }}\n}}")
    (op,) = [op for op in program.body.every_op() if op.name == f"stablehlo.{name}"]
    assert op.model is not None
    operands, results = ([program.array(value) for value in side] for side in (op.operands, op.results))
    return op.model.rule, operands, results, borders(program)[op.number]


def under(about: tuple[Rule, list[Array], list[Array], Borders], factors: dict[int, Axes]) -> Work:
    """The work with ``factors`` over the sub-axes 0 and 1, of two devices each."""
    rule, operands, results, found = about
    shapes = [tuple(array.shape for array in side) for side in (operands, results)]
    split = Split.of(rule, prime_mesh(Mesh((("x", 2), ("y", 2)))), factors, *shapes)
    types = [[array.element for array in side] for side in (operands, results)]
    return work_of(rule, split, *types, found)


def work(signature: str, body: str, name: str, factors: dict[int, Axes] | None = None) -> Work:
    return under(case(signature, body, name), factors or {})


DOT = (
    "(%x: tensor<256x64xbf16>, %w: tensor<64x1024xbf16>) -> tensor<256x1024xf32>",
    "    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<256x64xbf16>, tensor<64x1024xbf16>) -> tensor<256x1024xf32>\n    return %0 : tensor<256x1024xf32>",
)


@pytest.mark.parametrize(
    ("factors", "flops", "count"),
    [
        ({}, 2 * 256 * 64 * 1024, 2 * (256 * 64 + 64 * 1024) + 4 * 256 * 1024),
        ({1: (0, 1)}, 2 * 64 * 64 * 1024, 2 * (64 * 64 + 64 * 1024) + 4 * 64 * 1024),  # rows over 4
        ({0: (0,)}, 2 * 256 * 32 * 1024, 2 * (256 * 32 + 32 * 1024) + 4 * 256 * 1024),  # contracted over 2
    ],
)
def test_a_product(factors: dict[int, Axes], flops: int, count: int) -> None:
    """The factors of a product of two matrices: contracted, rows, columns."""
    assert work(*DOT, "dot_general", factors) == Work(flops, "bf16", count)


def test_an_elementwise_op_counts_what_it_reads_and_writes() -> None:
    kind = "tensor<64x64xf32>"
    body = f"    %0 = stablehlo.negate %x : {kind}\n    %1 = stablehlo.add %0, %y : {kind}\n    return %1 : {kind}"
    signature = f"(%x: {kind}, %y: {kind}) -> {kind}"
    assert work(signature, body, "negate") == Work(64 * 64, "f32", 64 * 64 * 4)
    assert work(signature, body, "add", {0: (0,)}) == Work(32 * 64, "f32", 2 * 32 * 64 * 4)  # y and the result


def test_a_mask_of_counters_costs_nothing() -> None:
    body = """    %i = stablehlo.iota dim = 0 : tensor<32768x32768xi32>
    %j = stablehlo.iota dim = 1 : tensor<32768x32768xi32>
    %m = stablehlo.compare GE, %i, %j : (tensor<32768x32768xi32>, tensor<32768x32768xi32>) -> tensor<32768x32768xi1>
    %s = stablehlo.select %m, %x, %x : tensor<32768x32768xi1>, tensor<32768x32768xf32>
    return %s : tensor<32768x32768xf32>"""
    signature = "(%x: tensor<32768x32768xf32>) -> tensor<32768x32768xf32>"
    assert work(signature, body, "compare") == Work(0, "i32", 0)
    assert work(signature, body, "select") == Work(2**30, "f32", 2 * 4 * 2**30)


def test_a_reduction_adds_all_that_it_takes() -> None:
    body = """    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>"""
    found = work("(%x: tensor<64x32xf32>) -> tensor<64xf32>", body, "reduce")
    assert found == Work(64 * 32, "f32", (64 * 32 + 64) * 4)


def test_a_convolution_multiplies_at_each_place_of_its_kernel() -> None:
    body = """    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x16x16x8xf32>, tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32>
    return %0 : tensor<2x16x16x4xf32>"""
    found = work("(%x: tensor<2x16x16x8xf32>, %k: tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32>", body, "convolution")
    flops = 2 * (2 * 16 * 16 * 4) * (3 * 3 * 8)
    assert found == Work(flops, "f32", 4 * (2 * 16 * 16 * 8 + 3 * 3 * 8 * 4 + 2 * 16 * 16 * 4))


def test_a_slice_reads_what_it_takes() -> None:
    body = """    %0 = stablehlo.slice %x [0:8, 0:64] : (tensor<1024x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>"""
    found = work("(%x: tensor<1024x64xf32>) -> tensor<8x64xf32>", body, "slice")
    assert found == Work(0, "f32", 2 * 8 * 64 * 4)


def test_a_gather_reads_indices_and_as_much_as_it_takes() -> None:
    body = """    %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}>
      : (tensor<50000x64xf32>, tensor<16x1xi32>) -> tensor<16x64xf32>
    return %0 : tensor<16x64xf32>"""
    found = work("(%t: tensor<50000x64xf32>, %i: tensor<16x1xi32>) -> tensor<16x64xf32>", body, "gather")
    assert found == Work(0, "f32", 4 * (16 * 64 + 16 + 16 * 64))


def test_an_update_writes_the_update() -> None:
    body = """    %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
      : (tensor<4096x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<4096x64xf32>
    return %0 : tensor<4096x64xf32>"""
    signature = "(%x: tensor<4096x64xf32>, %u: tensor<1x64xf32>, %i: tensor<i32>) -> tensor<4096x64xf32>"
    assert work(signature, body, "dynamic_update_slice") == Work(64, "f32", 2 * 64 * 4 + 4)


def test_a_scatter_reads_updates_and_writes_as_many() -> None:
    body = """    %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4096x64xf32>, tensor<16x1xi32>, tensor<16x64xf32>) -> tensor<4096x64xf32>
    return %0 : tensor<4096x64xf32>"""
    signature = "(%x: tensor<4096x64xf32>, %i: tensor<16x1xi32>, %u: tensor<16x64xf32>) -> tensor<4096x64xf32>"
    assert work(signature, body, "scatter") == Work(16 * 64, "f32", 4 * (16 + 2 * 16 * 64))


def test_a_flag_does_not_set_the_rate() -> None:
    """select takes an i1 first: the rate is that of the numbers."""
    kind = "tensor<8xf32>"
    body = f"    %0 = stablehlo.select %p, %x, %y : tensor<8xi1>, {kind}\n    return %0 : {kind}"
    assert work(f"(%p: tensor<8xi1>, %x: {kind}, %y: {kind}) -> {kind}", body, "select") == Work(8, "f32", 8 * 13)


LEAST = {
    "dot_general": DOT,
    "slice": (
        "(%x: tensor<1024x64xf32>) -> tensor<9x64xf32>",
        "    %0 = stablehlo.slice %x [0:9, 0:64] : (tensor<1024x64xf32>) -> tensor<9x64xf32>\n"
        "    return %0 : tensor<9x64xf32>",
    ),
    "add": (
        "(%x: tensor<7x6xf32>) -> tensor<7x6xf32>",
        "    %0 = stablehlo.add %x, %x : tensor<7x6xf32>\n    return %0 : tensor<7x6xf32>",
    ),
}


@pytest.mark.parametrize("name", LEAST)
def test_no_split_falls_below_the_least(name: str) -> None:
    about = case(*LEAST[name], name)
    least = least_work_of(*about, parts=4)
    count = len(about[0].factors)
    splits: list[dict[int, Axes]] = [{}, *({factor: (0, 1)} for factor in range(count))]
    splits += [{one: (0,), two: (1,)} for one in range(count) for two in range(count) if one != two]
    works = [under(about, split) for split in splits]
    assert all(found.flops >= least.flops and found.bytes >= least.bytes for found in works)
    assert least.bytes > 0
    assert min(found.bytes for found in works) <= 4 * least.bytes  # one device does no more than all
