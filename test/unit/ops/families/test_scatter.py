"""scatter, split every way, against the whole program on one device."""

from __future__ import annotations

from typing import Any

import jax
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
RNG = np.random.default_rng(11)
COMBINERS = ["set", "add", "multiply", "min", "max"]


def small(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return draw(RNG, shape, dtype)


def rows(high: int, *shape: int) -> np.ndarray:
    """Positions, some below and some beyond the range."""
    return RNG.integers(-high - 2, high + 3, shape).astype(np.int32)


def update(how: str) -> Any:
    return lambda x, i, u: getattr(x.at[i], how)(u, mode="drop")


@pytest.mark.parametrize(("how", "size"), [("set", 24), ("set", 26), ("add", 26), ("multiply", 24), ("max", 26)])
@pytest.mark.parametrize("mesh", MESHES)
def test_a_split_indexed_dimension_needs_nothing(how: str, mesh: tuple[int, ...], size: int) -> None:
    """Positions are shifted into the tile; what falls outside is dropped."""
    ids = np.unique(rows(size, 12) % (size + 4) - 2).astype(np.int32)  # which of equal positions wins is open
    arguments = [small(size, 6), ids, small(len(ids), 6)]
    seen = check_split(update(how), arguments, [P("x"), P(), P()], mesh, [P("x")], interpreter=True)
    assert seen.kinds == []


@pytest.mark.parametrize("how", COMBINERS)
def test_window_dimensions_pass_through(how: str) -> None:
    ids = np.array([3, -1, 9, 0, 25, -30], np.int32)
    arguments = [small(20, 14), ids, small(6, 14)]
    seen = check_split(update(how), arguments, [P(None, "x"), P(), P(None, "x")], (4, 2), [P(None, "x")])
    assert seen.kinds == []


@pytest.mark.parametrize(("how", "count"), [("add", 480), ("add", 500), ("multiply", 500), ("min", 500), ("max", 500)])
@pytest.mark.parametrize("mesh", [(8,), (2, 3)])
def test_split_updates_leave_partial_results(how: str, mesh: tuple[int, ...], count: int) -> None:
    """The operand counts once, the padding of uneven updates not at all."""
    signs = RNG.choice([-1.0, 1.0], (count, 8)).astype(np.float32)
    arguments = [small(10, 8), rows(10, count), signs]
    seen = check_split(update(how), arguments, [P(), P("x"), P("x")], mesh, [P()], interpreter=True)
    assert seen.kinds == ["all_reduce"]


@pytest.mark.parametrize(
    ("how", "start", "selects"), [("add", 0.0, 0), ("add", 1.0, 1), ("multiply", 0.0, 1), ("max", 5.0, 0)]
)
def test_what_counts_for_nothing_starts_everywhere(how: str, start: float, selects: int) -> None:
    """Zeros that are added to, and the greatest of x and x, need no other start on the other devices."""

    def function(i: Any, u: Any) -> Any:
        return getattr(jnp.full((12,), start, jnp.float32).at[i], how)(u, mode="promise_in_bounds")

    seen = check_split(function, [RNG.integers(0, 12, 64).astype(np.int32), small(64)], [P("x"), P("x")], (4,), [P()])
    assert seen.kinds == ["all_reduce"]
    assert str(seen.module).count("stablehlo.partition_id") == selects


@pytest.mark.parametrize("how", ["add", "max"])
def test_partial_results_are_scattered_where_the_result_is_split(how: str) -> None:
    arguments = [small(16, 8), rows(16, 800), small(800, 8)]
    seen = check_split(update(how), arguments, [P("x"), P("x"), P("x")], (4, 2), [P("x")], interpreter=True)
    assert "all_reduce" not in seen.kinds
    assert "reduce_scatter" in seen.kinds


def test_both_split_over_different_axes() -> None:
    arguments = [small(18, 8), rows(18, 900), small(900, 8)]
    seen = check_split(update("add"), arguments, [P("x"), P("y"), P("y")], (2, 3), [P("x")], interpreter=True)
    assert seen.kinds == ["all_reduce"]


def test_a_sum_over_segments_leaves_the_padding_out() -> None:
    """Padded updates hold exp(0) = 1: added at row 0 they would show."""

    def total(u: Any, i: Any) -> Any:
        return jax.ops.segment_sum(jnp.exp(u), i, 5)

    arguments = [np.zeros((50, 3), np.float32), np.sort(RNG.integers(0, 5, 50)).astype(np.int32)]
    check_split(total, arguments, [P("x"), P("x")], (8,), interpreter=True)
    check_split(total, arguments, [P("x"), P()], (4, 2), [P()])


def test_the_gradient_of_a_split_embedding() -> None:
    def loss(table: Any, ids: Any) -> Any:
        return (table[ids] ** 2).sum()

    table, ids = small(500, 6), RNG.integers(0, 500, (4, 8)).astype(np.int32)
    seen = check_split(jax.grad(loss), [table, ids], [P("x"), P()], (8,), [P("x")])
    assert "all_gather" not in seen.kinds
    check_split(jax.grad(loss), [table, ids], [P("x"), P("y")], (4, 2), [P("x")], interpreter=True)


@pytest.mark.parametrize("mesh", MESHES)
def test_subtraction_is_joined_by_addition(mesh: tuple[int, ...]) -> None:
    def take_away(x: Any, i: Any, u: Any) -> Any:
        return x.at[i].subtract(u)

    arguments = [small(10, 4), RNG.integers(0, 10, 500).astype(np.int32), small(500, 4)]
    seen = check_split(take_away, arguments, [P(), P("x"), P("x")], mesh, [P()], interpreter=True)
    assert seen.kinds == ["all_reduce"]


def windows(how: Any, **numbers: Any) -> Any:
    dims = lax.ScatterDimensionNumbers(**numbers)
    return lambda x, i, u: how(x, i, u, dims, mode="drop")


@pytest.mark.parametrize(
    ("how", "size"), [(lax.scatter, 2), (lax.scatter_add, 3), (lax.scatter_mul, 7), (lax.scatter_add, 19)]
)
@pytest.mark.parametrize("mesh", [(8,), (2, 3)])
def test_windows_that_straddle_tiles(how: Any, size: int, mesh: tuple[int, ...]) -> None:
    """A window that is not wholly inside the operand is dropped, on every device."""
    starts = np.array([[-1], [20 - size], [21 - size], [40]], np.int32)
    function = windows(how, update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,))
    arguments = [small(20, 3), starts, small(4, size, 3)]
    seen = check_split(function, arguments, [P("x"), P(), P()], mesh, [P("x")])
    assert seen.kinds == []


def test_many_windows_that_straddle_tiles() -> None:
    starts = np.array([[0, 0], [3, 5], [9, 11], [17, 2]], np.int32)
    numbers = {"update_window_dims": (1, 2), "inserted_window_dims": (), "scatter_dims_to_operand_dims": (0, 1)}
    arguments = [small(20, 14), starts, small(4, 3, 2)]
    for spec in [P("x", "y"), P(("x", "y")), P("y"), P(None, "x")]:
        function = windows(lax.scatter_add, **numbers)
        seen = check_split(function, arguments, [spec, P(), P()], (2, 3), [spec], interpreter=True)
        assert seen.kinds == []


def test_a_whole_window_that_is_indexed() -> None:
    """Only index 0 is in bounds where the window is the whole dimension."""
    numbers = {"update_window_dims": (1, 2), "inserted_window_dims": (), "scatter_dims_to_operand_dims": (0, 1)}
    starts = np.array([[0, 0], [2, 1], [4, 0], [3, -1]], np.int32)
    arguments = [small(6, 10), starts, small(4, 2, 10)]
    seen = check_split(windows(lax.scatter_add, **numbers), arguments, [P(None, "x"), P(), P()], (8,), [P(None, "x")])
    assert seen.kinds == []


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("batch", [24, 25])
def test_batch_dimensions(mesh: tuple[int, ...], batch: int) -> None:
    numbers = {
        "update_window_dims": (),
        "inserted_window_dims": (1,),
        "operand_batching_dims": (0,),
        "scatter_indices_batching_dims": (0,),
        "scatter_dims_to_operand_dims": (1,),
    }
    function = windows(lax.scatter_add, **numbers)
    arguments = [small(batch, 10), rows(10, batch, 5, 1), small(batch, 5)]
    seen = check_split(function, arguments, [P("x"), P("x"), P("x")], mesh, [P("x")], interpreter=True)
    assert seen.kinds == []


def text_of(element: str, index: str, operand: str, updates: str, body: str = "stablehlo.add") -> str:
    x, i, u = f"tensor<20x{element}>", f"tensor<120x1x{index}>", f"tensor<120x{element}>"
    return f"""
      module attributes {{mhlo.num_partitions = 8 : i32}} {{
        func.func @main(%x: {x} {{mhlo.sharding = "{operand}"}}, %i: {i} {{mhlo.sharding = "{updates}"}},
            %u: {u}) -> ({x} {{mhlo.sharding = "{operand}"}}) {{
          %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
            ^bb0(%old: tensor<{element}>, %new: tensor<{element}>):
              %1 = {body} %old, %new : tensor<{element}>
              stablehlo.return %1 : tensor<{element}>
          }}) : ({x}, {i}, {u}) -> {x}
          return %0 : {x}
        }}
      }}"""


@pytest.mark.parametrize("kind", ["i8", "ui8", "ui32", "i64", "ui64"])
@pytest.mark.parametrize("splits", [("{devices=[8]<=[8]}", "{replicated}"), ("{replicated}", "{devices=[8,1]<=[8]}")])
def test_every_index_type(kind: str, splits: tuple[str, str]) -> None:
    """Out of range stays out of range: nothing wraps when positions are shifted or converted."""
    dtype = element_type(kind).dtype
    assert dtype is not None
    info = np.iinfo(dtype)
    ids = np.resize(np.array([0, 1, 19, 20, 22, 127, info.max, info.max // 2 + 1, info.min, 7, 3, 5], dtype), (120, 1))
    check_text(text_of("f32", kind, *splits), [small(20), ids, small(120)], interpreter=True)


@pytest.mark.parametrize(
    ("element", "body"),
    [
        ("i1", "stablehlo.or"), ("i1", "stablehlo.and"), ("i8", "stablehlo.add"), ("ui8", "stablehlo.maximum"),
        ("i64", "stablehlo.minimum"), ("ui64", "stablehlo.add"), ("f16", "stablehlo.maximum"),
        ("bf16", "stablehlo.add"), ("f64", "stablehlo.minimum"), ("complex<f32>", "stablehlo.add"),
        ("i32", "stablehlo.xor"), ("i32", "stablehlo.and"), ("complex<f32>", "stablehlo.subtract"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("operand", ["{replicated}", "{devices=[8]<=[8]}"])
def test_every_element_type(element: str, body: str, operand: str) -> None:
    dtype = element_type(element).dtype
    ids = RNG.integers(0, 20, (120, 1)).astype(np.int32)
    text = text_of(element, "i32", operand, "{devices=[8,1]<=[8]}", body)
    check_text(text, [small(20, dtype=dtype), ids, small(120, dtype=dtype)])


def test_two_inputs() -> None:
    def both(x: Any, y: Any, i: Any, u: Any, v: Any) -> Any:
        return x.at[i].add(u), y.at[i].max(v)

    arguments = [small(18, 4), small(18, 4), np.arange(0, 18, 3, dtype=np.int32), small(6, 4), small(6, 4)]
    check_split(both, arguments, [P("x"), P("x"), P(), P(), P()], (2, 3), interpreter=True)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing_to_write(shape: tuple[int, int]) -> None:
    arguments = [small(8, 2), np.zeros(shape, np.int32), small(*shape, 2)]
    check_split(update("add"), arguments, [P("x"), P(), P()], (8,))


@pytest.mark.parametrize("how", ["set", "add"])
@pytest.mark.parametrize(("mesh", "rows"), [((8,), 24), ((2, 3), 25), ((8,), 25)])
def test_a_column_that_counts_is_a_batch_dimension(how: str, mesh: tuple[int, ...], rows: int) -> None:
    """cache[arange(n), place] = new over split rows stays where it is; the padding of uneven rows is not written."""

    def put(cache: Any, place: Any, new: Any) -> Any:
        return getattr(cache.at[jnp.arange(rows), place], how)(jnp.exp(new))

    arguments = [small(rows, 20, 4), RNG.integers(0, 20, rows).astype(np.int32), np.zeros((rows, 4), np.float32)]
    seen = check_split(put, arguments, [P("x"), P("x"), P("x")], mesh, [P("x")], interpreter=True)
    assert seen.kinds == []
