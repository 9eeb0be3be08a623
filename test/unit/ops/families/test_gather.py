"""gather, split every way, against the whole program on one device."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text, draw
from support.split import check_split

from shardpass.element_types import element_type

pytestmark = pytest.mark.turns(2)

MESHES = [(8,), (4, 2), (2, 3)]
RNG = np.random.default_rng(7)


def table(rows: int, width: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(rows * width).reshape(rows, width).astype(dtype)


def lookup(x: Any, i: Any) -> Any:
    return x.at[i].get(mode="clip")


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("rows", [48, 50])
def test_embedding_over_a_split_vocabulary(mesh: tuple[int, ...], rows: int) -> None:
    """Masked look-ups joined by a sum; the table is never gathered. Negative and large positions are clamped."""
    ids = RNG.integers(-5, rows + 5, (4, 6)).astype(np.int32)
    seen = check_split(lookup, [table(rows, 10), ids], [P("x"), P()], mesh, interpreter=True)
    assert seen.kinds == ["all_reduce"]


def test_the_sum_is_scattered_where_the_result_is_split() -> None:
    ids = RNG.integers(0, 4800, (16,)).astype(np.int32)
    seen = check_split(lookup, [table(4800, 8), ids], [P("x"), P()], (4, 2), [P("x")])
    assert "reduce_scatter" in seen.kinds
    assert "all_reduce" not in seen.kinds


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("count", [24, 25])
def test_split_over_the_indices_and_the_width(mesh: tuple[int, ...], count: int) -> None:
    """Index dimensions and pass-through dimensions need nothing from other devices."""
    y = "y" if len(mesh) > 1 else None
    ids = RNG.integers(0, 20, (count,)).astype(np.int32)
    seen = check_split(lookup, [table(20, 12), ids], [P(None, y), P("x")], mesh, [P("x", y)], interpreter=True)
    assert seen.kinds == []


def rows_of(x: str, i: str, rows: int = 50) -> str:
    """Rows of a table of element type ``x``, split over 8 devices, at 12 positions of type ``i``."""
    table_type, ids, result = f"tensor<{rows}x3x{x}>", f"tensor<12x{i}>", f"tensor<12x3x{x}>"
    return f"""
      module attributes {{mhlo.num_partitions = 8 : i32}} {{
        func.func @main(%x: {table_type} {{mhlo.sharding = "{{devices=[8,1]<=[8]}}"}}, %i: {ids}) -> {result} {{
          %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
            slice_sizes = array<i64: 1, 3>}}> : ({table_type}, {ids}) -> {result}
          return %0 : {result}
        }}
      }}"""


@pytest.mark.parametrize("kind", ["i8", "ui8", "i16", "ui32", "i64", "ui64"])
def test_every_index_type(kind: str) -> None:
    """Positions are clamped in their own type: an unsigned one beyond 2**31 is large, not negative."""
    dtype = np.dtype(kind.replace("ui", "uint") if kind[0] == "u" else kind.replace("i", "int"))
    info = np.iinfo(dtype)
    ids = np.array([0, 1, 39, 40, 49, 127, info.max, info.max // 2 + 1, info.min, 7, 3, 5], dtype)
    seen = check_text(rows_of("f32", kind), [table(50, 3), ids], interpreter=True)
    assert seen.kinds == ["all_reduce"]


ELEMENTS = ["i1", "i8", "ui8", "i32", "i64", "ui64", "f16", "bf16", "f64", "complex<f32>", "f8E4M3FN", "f8E5M2"]


@pytest.mark.parametrize("kind", ELEMENTS)
def test_every_element_type(kind: str) -> None:
    x = draw(RNG, (500, 3), element_type(kind).dtype)
    ids = RNG.integers(-9, 509, (12,)).astype(np.int32)
    assert check_text(rows_of(kind, "i32", 500), [x, ids]).kinds == ["all_reduce"]


def test_nothing_is_lost_in_the_sum() -> None:
    """Infinities, NaN and denormals come through the sum."""
    x = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.0], np.float32), 4000)
    seen = check_split(lookup, [x, np.arange(0, 4000, 401, dtype=np.int32)], [P("x"), P()], (8,), interpreter=True)
    assert seen.kinds == ["all_reduce"]


@pytest.mark.parametrize("mesh", MESHES)
def test_batch_dimensions(mesh: tuple[int, ...]) -> None:
    """take_along_axis: batching dimensions go together; split over the indexed one too it is a masked sum."""
    x, ids = table(12, 20), RNG.integers(0, 20, (12, 5)).astype(np.int32)

    def pick(x: Any, i: Any) -> Any:
        return jnp.take_along_axis(x, i, axis=1, mode="clip")

    assert check_split(pick, [x, ids], [P("x"), P("x")], mesh, [P("x")], interpreter=True).kinds == []
    if len(mesh) > 1:
        seen = check_split(pick, [x, ids], [P("x", "y"), P("x")], mesh, [P("x")])
        assert seen.kinds == ["all_reduce"]


@pytest.mark.parametrize("spec", [P("x", "y"), P("x"), P(None, ("x", "y")), P(("y", "x"))])
def test_two_indexed_dimensions(spec: P) -> None:
    x = table(11, 13)
    ids = np.stack([RNG.integers(-2, 13, 9), RNG.integers(-2, 15, 9)], 1).astype(np.int32)

    def pick(x: Any, i: Any) -> Any:
        return x.at[i[:, 0], i[:, 1]].get(mode="clip")

    seen = check_split(pick, [x, ids], [spec, P()], (2, 3), interpreter=True)
    assert set(seen.kinds) == {"all_reduce"}


@pytest.mark.parametrize("size", [2, 3, 7, 19])
@pytest.mark.parametrize("mesh", MESHES)
def test_slices_that_straddle_tiles(size: int, mesh: tuple[int, ...]) -> None:
    x = table(20, 4)
    starts = np.array([[-3], [0], [1], [4], [9], [13], [19], [40]], np.int32)

    def windows(x: Any, i: Any) -> Any:
        numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
        return lax.gather(x, i, numbers, (size, 4), mode="clip")

    seen = check_split(windows, [x, starts], [P("x"), P()], mesh, interpreter=True)
    assert set(seen.kinds) <= {"all_reduce", "all_gather", "all_to_all"}


def test_a_whole_window_that_is_indexed() -> None:
    """Where the slice is the whole dimension any index is clamped to 0, on every tile too."""
    x = table(6, 10)
    starts = np.array([[0, 0], [4, 5], [-1, 2]], np.int32)

    def windows(x: Any, i: Any) -> Any:
        numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
        return lax.gather(x, i, numbers, (2, 10), mode="clip")

    assert check_split(windows, [x, starts], [P(None, "x"), P()], (4, 2), [P(None, None, "x")]).kinds == []


def test_a_window_cut_short_moves_elsewhere() -> None:
    """Positions [0, 3) of a split dimension that is not indexed: the split moves to the other dimension."""
    text = """
      module attributes {mhlo.num_partitions = 4 : i32} {
        func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %i: tensor<5x1xi32>)
            -> tensor<5x3xf32> {
          %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
            slice_sizes = array<i64: 1, 3>}> : (tensor<64x64xf32>, tensor<5x1xi32>) -> tensor<5x3xf32>
          return %0 : tensor<5x3xf32>
        }
      }"""
    check_text(text, [table(64, 64), RNG.integers(0, 64, (5, 1)).astype(np.int32)], interpreter=True)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing_to_look_up(shape: tuple[int, int]) -> None:
    ids = np.zeros(shape, np.int32)
    check_split(lookup, [table(8, 2), ids], [P("x"), P()], (8,))


def test_a_dimension_of_size_one() -> None:
    check_split(lookup, [table(1, 16), np.array([0, 5, -1], np.int32)], [P("x", "y"), P()], (2, 4), interpreter=True)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("rows", [24, 25])
def test_a_column_that_counts_is_a_batch_dimension(mesh: tuple[int, ...], rows: int) -> None:
    """x[arange(n), labels] over split rows stays where it is."""

    def pick(x: Any, labels: Any) -> Any:
        return x[jnp.arange(rows), labels], x[jnp.arange(rows)[:, None], labels[:, None] + jnp.arange(3)]

    arguments = [table(rows, 20), RNG.integers(-20, 17, rows).astype(np.int32)]
    seen = check_split(pick, arguments, [P("x"), P("x")], mesh, [P("x"), P("x")], interpreter=True)
    assert seen.kinds == []


@pytest.mark.parametrize(
    "column", ["arange(7)[i % 7]", "arange(8) // 2", "arange(8)[::-1]", "arange(1, 9)", "arange(8) - 9"]
)
def test_columns_that_only_look_like_counting(column: str) -> None:
    def pick(x: Any, i: Any) -> Any:
        rows = eval(column, {"arange": jnp.arange, "i": i})
        return x.at[rows, i].get(mode="clip")

    check_split(pick, [table(8, 20), np.arange(8, dtype=np.int32)], [P("x"), P("x")], (4, 2), [P("x")])
