"""dynamic_slice and dynamic_update_slice along split dimensions, against the whole program on one device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text, draw
from support.split import check_split

from shardpass.element_types import element_type

pytestmark = pytest.mark.turns(2)

MESHES = [(8,), (4, 2), (2, 3)]
RNG = np.random.default_rng(3)


def small(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return draw(RNG, shape, dtype)


def each_position(function: Any, high: int) -> Any:
    """``function(x, p)`` at positions below, in, between and beyond the tiles, in one program."""

    def all_of_them(x: Any, start: Any, *rest: Any) -> Any:
        return [function(x, start + p, *rest) for p in (-3, 0, 1, high // 3, high // 2, high - 2, high + 5)]

    return all_of_them


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(("size", "part"), [(2400, 1), (2404, 1), (242, 7), (26, 25)])
def test_slice_of_a_split_dimension(mesh: tuple[int, ...], size: int, part: int) -> None:
    def cut(x: Any, start: Any) -> Any:
        return lax.dynamic_slice_in_dim(x, start, part)

    arguments = [small(size, 3), np.int32(0)]
    seen = check_split(each_position(cut, size), arguments, [P("x"), P()], mesh, interpreter=part < 25)
    if part < 10:  # a long slice may be cheaper to gather
        assert set(seen.kinds) == {"all_reduce"}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(("size", "part"), [(26, 1), (24, 2), (26, 7), (26, 25)])
def test_update_of_a_split_dimension_needs_nothing(mesh: tuple[int, ...], size: int, part: int) -> None:
    def put(x: Any, start: Any, u: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(x, u, start, 0)

    arguments = [small(size, 3), np.int32(0), small(part, 3)]
    specs, count = [P("x"), P(), P()], 7
    seen = check_split(each_position(put, size), arguments, specs, mesh, [P("x")] * count, interpreter=part < 25)
    assert seen.kinds == []


@pytest.mark.parametrize("part", [(1, 1), (3, 1), (2, 5), (9, 10)])
@pytest.mark.parametrize("spec", [P("x", "y"), P(("y", "x")), P(None, "y")])
def test_two_dimensions(part: tuple[int, int], spec: P) -> None:
    def both(x: Any, u: Any, i: Any, j: Any) -> Any:
        return lax.dynamic_slice(x, (i, j), part), lax.dynamic_update_slice(x, u, (i, j))

    def many(x: Any, u: Any, i: Any) -> Any:
        return [both(x, u, i + a, i + b) for a, b in [(0, 0), (3, 9), (10, 4), (-1, 30)]]

    arguments = [small(11, 13), small(*part), np.int32(0)]
    check_split(many, arguments, [spec, P(), P()], (2, 3), [P(), spec] * 4, interpreter=part == (3, 1))


def test_whole_dimensions_pass_through() -> None:
    def both(x: Any, u: Any, i: Any) -> Any:
        return lax.dynamic_slice(x, (i, i), (2, 26)), lax.dynamic_update_slice(x, u, (i, i))

    arguments = [small(10, 26), small(3, 26), np.int32(4)]
    split = P(None, "x")
    seen = check_split(both, arguments, [split, split, P()], (8,), [split, split], interpreter=True)
    assert seen.kinds == []


def test_a_cache_is_updated_in_a_loop() -> None:
    """Each step writes one row of a cache that is split along its rows, as decoding with a split sequence does."""

    def decode(cache: Any, rows: Any) -> Any:
        def step(i: Any, cache: Any) -> Any:
            row = lax.dynamic_slice_in_dim(rows, i, 1)
            return lax.dynamic_update_slice_in_dim(cache, row, i, 0)

        return lax.fori_loop(0, 6, step, cache)

    seen = check_split(decode, [small(16, 4), small(6, 4)], [P("x"), P()], (8,), [P("x")], interpreter=True)
    assert "all_gather" not in seen.kinds


def test_the_gradient_of_a_slice() -> None:
    def loss(x: Any, i: Any) -> Any:
        return (lax.dynamic_slice_in_dim(x, i, 5) ** 2).sum()

    check_split(jax.grad(loss), [small(26, 2), np.int32(9)], [P("x"), P()], (4, 2), [P("x")], interpreter=True)


def text_of(element: str, index: str, size: int = 500) -> str:
    x, u, i = f"tensor<{size}x{element}>", f"tensor<3x{element}>", f"tensor<{index}>"
    return f"""
      module attributes {{mhlo.num_partitions = 8 : i32}} {{
        func.func @main(%x: {x} {{mhlo.sharding = "{{devices=[8]<=[8]}}"}}, %u: {u}, %i: {i})
            -> ({u}, {x} {{mhlo.sharding = "{{devices=[8]<=[8]}}"}}) {{
          %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : ({x}, {i}) -> {u}
          %1 = stablehlo.dynamic_update_slice %x, %u, %i : ({x}, {u}, {i}) -> {x}
          return %0, %1 : {u}, {x}
        }}
      }}"""


@pytest.mark.parametrize("kind", ["i8", "ui8", "ui32", "i64", "ui64"])
def test_every_index_type(kind: str) -> None:
    dtype = element_type(kind).dtype
    assert dtype is not None
    info = np.iinfo(dtype)
    size = 500 if info.bits > 8 else 100  # XLA's own clamp wraps where the type is too narrow for the bound
    for position in (62, info.min, info.max):
        arguments = [small(size), small(3), np.array(position, dtype)]
        check_text(text_of("f32", kind, size), arguments, interpreter=position == 62)


ELEMENTS = ["i1", "i8", "ui8", "i64", "ui64", "f16", "bf16", "f64", "complex<f64>", "f8E4M3FN", "f8E4M3FNUZ"]


@pytest.mark.parametrize("kind", ELEMENTS)
def test_every_element_type(kind: str) -> None:
    dtype = element_type(kind).dtype
    seen = check_text(text_of(kind, "i32"), [small(500, dtype=dtype), small(3, dtype=dtype), np.int32(125)])
    assert seen.kinds == ["all_gather" if kind == "f8E4M3FNUZ" else "all_reduce"]


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_that_are_hardly_there(size: int) -> None:
    def both(x: Any, i: Any) -> Any:
        return lax.dynamic_slice(x, (i,), (0,)), lax.dynamic_update_slice(x, x[:size], (i,))

    check_split(both, [small(size + 1), np.int32(3)], [P("x"), P()], (8,))


@pytest.mark.parametrize("place", [-9, 3, 40])
def test_a_slice_of_a_slice_keeps_its_clamp(place: int) -> None:
    """The result is cut into tiles by a second dynamic_slice; XLA would fold the two and forget the first's clamp."""

    def cut(x: Any, i: Any) -> Any:
        return lax.dynamic_slice(x, (i, i), (8, 6))

    check_split(cut, [small(9, 12), np.int32(place)], [P(), P()], (4, 2), [P("x", "y")], interpreter=place > 9)


@pytest.mark.parametrize("place", [-9, 3, 40])
def test_a_slice_of_a_gather_keeps_its_clamp(place: int) -> None:
    def cut(x: Any, i: Any) -> Any:
        numbers = lax.GatherDimensionNumbers(offset_dims=(0, 1), collapsed_slice_dims=(), start_index_map=(0, 1))
        return lax.gather(x, i, numbers, (8, 6), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)

    arguments = [small(9, 12), np.array([place, place], np.int32)]
    check_split(cut, arguments, [P(), P()], (4, 2), [P("x", "y")])
