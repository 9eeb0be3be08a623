"""Positions of narrow types: clamped as one device clamps them, at the ends of the type and of the array."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

import shardpass

DTYPES = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16, "i64": np.int64, "ui64": np.uint64}


def ends(element: str, size: int) -> list[int]:
    """The ends of the type, and the last places of an array of so many rows."""
    info = np.iinfo(DTYPES[element])
    wanted = {0, 1, size - 3, size - 2, size - 1, size, info.min, info.min + 1, info.max - 1, info.max, 127, 128}
    return sorted(p for p in wanted if info.min <= p <= info.max)


def rows(size: int) -> str:
    return f'tensor<{size}x2xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}'


def program(body: str, arguments: str, result: str) -> str:
    return f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
      func.func @main({arguments}) -> ({result}) {{ {body} }} }}"""


# 10 rows: less than any type reaches; 128 and 129: the last place of an i8 and one more; 300: more than ui8 reaches
@pytest.mark.parametrize(
    ("element", "size"),
    [
        *(("i8", size) for size in (10, 128, 129, 300)),
        *(("ui8", size) for size in (200, 256, 300)),
        *(("i64", 10), ("ui64", 10)),
    ],
)
def test_the_start_of_a_slice_and_of_an_update(element: str, size: int) -> None:
    """NumPy is the witness: of 300 rows and an i8 XLA's CPU client updates row 41 at the latest, 297 less 256."""
    x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    update = -np.ones((3, 2), np.float32)
    body = f"""%c = stablehlo.constant dense<0> : tensor<{element}>
      %0 = stablehlo.dynamic_slice %x, %i, %c, sizes = [3, 2]
        : (tensor<{size}x2xf32>, tensor<{element}>, tensor<{element}>) -> tensor<3x2xf32>
      %1 = stablehlo.dynamic_update_slice %x, %u, %i, %c
        : (tensor<{size}x2xf32>, tensor<3x2xf32>, tensor<{element}>, tensor<{element}>) -> tensor<{size}x2xf32>
      return %0, %1 : tensor<3x2xf32>, tensor<{size}x2xf32>"""
    arguments = f"%x: {rows(size)}, %i: tensor<{element}>, %u: tensor<3x2xf32>"
    text = program(body, arguments, f"tensor<3x2xf32>, {rows(size)}")
    run = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    for start in ends(element, size):
        first = min(max(start, 0), size - 3)
        updated = x.copy()
        updated[first : first + 3] = update
        part, whole = run(x, np.asarray(start, DTYPES[element]), update)
        np.testing.assert_array_equal(part, x[first : first + 3], f"from {start}")
        np.testing.assert_array_equal(whole, updated, f"at {start}")


@pytest.mark.parametrize(
    ("element", "size"), [("i8", 10), ("i8", 128), ("i8", 129), ("i8", 300), ("ui8", 300), ("i16", 300), ("i64", 10)]
)
def test_the_indices_of_a_gather_and_of_a_scatter(element: str, size: int) -> None:
    """A gather clamps; a scatter leaves out what does not fit."""
    x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    places = np.array(ends(element, size), DTYPES[element])[:, None]
    n = len(places)
    body = f"""
      %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}}>
        : (tensor<{size}x2xf32>, tensor<{n}x1x{element}>) -> tensor<{n}x2xf32>
      %1 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> }})
        : (tensor<{size}x2xf32>, tensor<{n}x1x{element}>, tensor<{n}x2xf32>) -> tensor<{size}x2xf32>
      return %0, %1 : tensor<{n}x2xf32>, tensor<{size}x2xf32>"""
    arguments = f"%x: {rows(size)}, %i: tensor<{n}x1x{element}>, %u: tensor<{n}x2xf32>"
    update = np.arange(1, 2 * n + 1, dtype=np.float32).reshape(n, 2)
    check_text(program(body, arguments, f"tensor<{n}x2xf32>, {rows(size)}"), (x, places, update))
