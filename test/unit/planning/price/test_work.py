"""Flops, bytes and elements of an op under a split, by arithmetic."""

from __future__ import annotations

import pytest
from support.programs import read

from shardpass.cost.machine import Work
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Axes, Rule
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.price.borders import Borders, borders
from shardpass.planning.price.clock import MADE, least_work_of, work_of
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
    assert work(*DOT, "dot_general", factors) == Work(flops, "bf16", count, 1)


def test_an_elementwise_op_counts_what_it_reads_and_writes() -> None:
    kind = "tensor<64x64xf32>"
    body = f"    %0 = stablehlo.negate %x : {kind}\n    %1 = stablehlo.add %0, %y : {kind}\n    return %1 : {kind}"
    signature = f"(%x: {kind}, %y: {kind}) -> {kind}"
    assert work(signature, body, "negate") == Work(64 * 64, "f32", 64 * 64 * 4)  # a part of the kernel of the sum
    assert work(signature, body, "add", {0: (0,)}) == Work(32 * 64, "f32", 2 * 32 * 64 * 4, 32 * 64)  # y and the result


def test_a_mask_of_counters_costs_next_to_nothing() -> None:
    body = """    %i = stablehlo.iota dim = 0 : tensor<32768x32768xi32>
    %j = stablehlo.iota dim = 1 : tensor<32768x32768xi32>
    %m = stablehlo.compare GE, %i, %j : (tensor<32768x32768xi32>, tensor<32768x32768xi32>) -> tensor<32768x32768xi1>
    %s = stablehlo.select %m, %x, %x : tensor<32768x32768xi1>, tensor<32768x32768xf32>
    return %s : tensor<32768x32768xf32>"""
    signature = "(%x: tensor<32768x32768xf32>) -> tensor<32768x32768xf32>"
    assert work(signature, body, "compare") == Work(MADE * 2**30, "i32", 0)
    assert work(signature, body, "select") == Work(2**30, "f32", 2 * 4 * 2**30, 2**30)


def test_a_reduction_adds_all_that_it_takes() -> None:
    body = """    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>"""
    found = work("(%x: tensor<64x32xf32>) -> tensor<64xf32>", body, "reduce")
    assert found == Work(64 * 32, "f32", (64 * 32 + 64) * 4, 64 * 32)


def test_a_convolution_multiplies_at_each_place_of_its_kernel() -> None:
    body = """    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x16x16x8xf32>, tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32>
    return %0 : tensor<2x16x16x4xf32>"""
    found = work("(%x: tensor<2x16x16x8xf32>, %k: tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32>", body, "convolution")
    flops = 2 * (2 * 16 * 16 * 4) * (3 * 3 * 8)
    assert found == Work(flops, "f32", 4 * (2 * 16 * 16 * 8 + 3 * 3 * 8 * 4 + 2 * 16 * 16 * 4), 1)


def test_a_slice_reads_what_it_takes() -> None:
    body = """    %0 = stablehlo.slice %x [0:8, 0:64] : (tensor<1024x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>"""
    found = work("(%x: tensor<1024x64xf32>) -> tensor<8x64xf32>", body, "slice")
    assert found == Work(MADE * 8 * 64, "f32", 2 * 8 * 64 * 4, 8 * 64)


def test_a_gather_reads_indices_and_as_much_as_it_takes() -> None:
    body = """    %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}>
      : (tensor<50000x64xf32>, tensor<16x1xi32>) -> tensor<16x64xf32>
    return %0 : tensor<16x64xf32>"""
    found = work("(%t: tensor<50000x64xf32>, %i: tensor<16x1xi32>) -> tensor<16x64xf32>", body, "gather")
    assert found == Work(MADE * 16 * 64, "f32", 4 * (16 * 64 + 16 + 16 * 64), 16 * 64)


def test_an_update_writes_the_update() -> None:
    body = """    %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
      : (tensor<4096x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<4096x64xf32>
    return %0 : tensor<4096x64xf32>"""
    signature = "(%x: tensor<4096x64xf32>, %u: tensor<1x64xf32>, %i: tensor<i32>) -> tensor<4096x64xf32>"
    assert work(signature, body, "dynamic_update_slice") == Work(64, "f32", 2 * 64 * 4 + 4, 64)


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
    assert work(signature, body, "scatter") == Work(16 * 64, "f32", 4 * (16 + 2 * 16 * 64), 16 * 64)


def test_a_flag_does_not_set_the_rate() -> None:
    """select takes an i1 first: the rate is that of the numbers."""
    kind = "tensor<8xf32>"
    body = f"    %0 = stablehlo.select %p, %x, %y : tensor<8xi1>, {kind}\n    return %0 : {kind}"
    assert work(f"(%p: tensor<8xi1>, %x: {kind}, %y: {kind}) -> {kind}", body, "select") == Work(8, "f32", 8 * 13, 8)


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


def square(*batch: int, n: int = 64) -> str:
    return f"tensor<{'x'.join(map(str, (*batch, n, n)))}xf32>"


def call(target: str, kind: str, *others: str) -> tuple[str, str, str]:
    """A call of ``target`` on one array of ``kind``, which gives that array and ``others`` back."""
    results = ", ".join((kind, *others))
    count = kind.count("x") - 2
    body = f"""    %0:{1 + len(others)} = stablehlo.custom_call @{target}(%x) {{api_version = 4 : i32,
      mhlo.frontend_attributes = {{num_batch_dims = "{count}"}}}} : ({kind}) -> ({results})
    return %0#0 : {kind}"""
    return f"(%x: {kind}) -> {kind}", body, "custom_call"


@pytest.mark.parametrize("target", ["lapack_sgetrf_ffi", "cusolver_getrf_ffi", "hipsolver_getrf_ffi"])
def test_lu_subtracts_an_outer_product_a_step(target: str) -> None:
    """Of each step k, (n-k)^2 products and as many differences: 2/3 n^3 in all, to a part of 1/n."""
    steps = sum(2 * (64 - k) ** 2 for k in range(1, 65))
    found = work(*call(target, square(3), "tensor<3x64xi32>", "tensor<3xi32>"))
    assert found.flops == pytest.approx(3 * steps, rel=2 / 64)


@pytest.mark.parametrize(
    ("target", "cubes"),
    [
        ("lapack_spotrf_ffi", 1 / 3),
        ("lapack_sgeqrf_ffi", 4 / 3),
        ("lapack_sorgqr_ffi", 4 / 3),
        ("lapack_sgehrd_ffi", 10 / 3),
        ("lapack_ssytrd_ffi", 4 / 3),
        ("lapack_ssyevd_ffi", 9),
        ("cusolver_syevd_ffi", 9),
        ("lapack_sgeev_ffi", 25),
        ("lapack_sgesdd_ffi", 21),
    ],
)
def test_a_factorization_takes_multiples_of_n_cubed(target: str, cubes: float) -> None:
    whole, halves = (work(*call(target, square(4)), factors) for factors in ({}, {0: (0,)}))  # type: ignore[arg-type]
    assert whole.flops == pytest.approx(4 * cubes * 64**3)
    assert halves.flops == whole.flops / 2


def test_cholesky_and_a_triangle_solved() -> None:
    body = f"    %0 = stablehlo.cholesky %x, lower = true : {square(5)}\n    return %0 : {square(5)}"
    assert work(f"(%x: {square(5)}) -> {square(5)}", body, "cholesky").flops == pytest.approx(5 * 64**3 / 3)
    right = "tensor<5x64x16xf32>"
    body = f"""    %0 = "stablehlo.triangular_solve"(%x, %b) <{{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : ({square(5)}, {right}) -> {right}
    return %0 : {right}"""
    found = work(f"(%x: {square(5)}, %b: {right}) -> {right}", body, "triangular_solve")
    steps = sum(2 * k for k in range(64))  # to the row k, of each column
    assert found.flops == pytest.approx(5 * 16 * steps, rel=2 / 64)


@pytest.mark.parametrize("size", [8, 1024])
def test_a_sort_compares_each_element_log_n_times(size: int) -> None:
    kind = f"tensor<4x{size}xf32>"
    body = f"""    %0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) : ({kind}) -> {kind}
    return %0 : {kind}"""
    assert work(f"(%x: {kind}) -> {kind}", body, "sort").flops == 4 * size * size.bit_length() - 4 * size


@pytest.mark.parametrize(
    ("how", "given", "made", "flops"),
    [
        ("FFT", "tensor<3x16x64xcomplex<f32>>", "tensor<3x16x64xcomplex<f32>>", 5 * 48 * 64 * 6),
        ("RFFT", "tensor<3x16x64xf32>", "tensor<3x16x33xcomplex<f32>>", 5 * 48 * 64 * 6 / 2),
        ("IRFFT", "tensor<3x16x33xcomplex<f32>>", "tensor<3x16x64xf32>", 5 * 48 * 64 * 6 / 2),
    ],
)
def test_a_transform_takes_five_n_log_n(how: str, given: str, made: str, flops: float) -> None:
    body = f"    %0 = stablehlo.fft %x, type = {how}, length = [64] : ({given}) -> {made}\n    return %0 : {made}"
    assert work(f"(%x: {given}) -> {made}", body, "fft").flops == flops


def test_dimensions_that_cannot_be_split_multiply_nothing() -> None:
    """Each operand and result has a factor of its own there: what is computed is of one of them."""
    body = "    %0 = stablehlo.reshape %x : (tensor<6x35xf32>) -> tensor<10x21xf32>\n    return %0 : tensor<10x21xf32>"
    assert work("(%x: tensor<6x35xf32>) -> tensor<10x21xf32>", body, "reshape").flops == MADE * 10 * 21
    body = """    %i = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 1, 3>,
      padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
    return %0 : tensor<4x64xf32>"""
    assert work("(%x: tensor<4x64xf32>) -> tensor<4x64xf32>", body, "reduce_window").flops == 4 * 64
