"""Positions of types too narrow for the array, at the ends of their range: evaluated element by element.

XLA's own clamp wraps where the type does not hold the bound, so that a program on one device is no witness here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.elements import Elements

import shardpass

DEVICES, SIZE = 8, 70_001
TILE = -(-SIZE // DEVICES)
SPLIT = '{mhlo.sharding = "{devices=[8]<=[8]}"}'
NARROW = ["i8", "ui8", "i16", "ui16"]


def positions(kind: str) -> list[int]:
    info = np.iinfo(kind.replace("i", "int"))
    return sorted({int(info.min), int(info.max), int(info.max) // 2, int(info.max) // 2 + 1, 0, 5, 100})


def evaluated(kind: str, body: str, result: str, where: Any) -> Elements:
    """The program of one device. Element g of the split array %x is g; ``where``: the positions %i of type ``kind``."""
    indices = f"tensor<{len(where)}x1x{kind}>" if isinstance(where, list) else f"tensor<{kind}>"
    out = SPLIT if result.startswith(str(SIZE)) else '{mhlo.sharding = "{replicated}"}'
    text = f"""module attributes {{mhlo.num_partitions = {DEVICES} : i32}} {{
      func.func @main(%x: tensor<{SIZE}xi64> {SPLIT}, %i: {indices}, %u: tensor<2xi64>) -> (tensor<{result}> {out}) {{
        {body}
        return %out : tensor<{result}>
      }} }}"""
    module = shardpass.run_pipeline(text, "partition{effort=0}")
    return Elements(
        module,
        [
            lambda device, index: device * TILE + index[0],
            lambda device, index: where[index[0]] if index else where,
            lambda device, index: -1 - index[0],
        ],
    )


@pytest.mark.parametrize("kind", NARROW)
def test_gather(kind: str) -> None:
    where = positions(kind)
    body = f"""%out = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}}>
        : (tensor<{SIZE}xi64>, tensor<{len(where)}x1x{kind}>) -> tensor<{len(where)}xi64>"""
    found = evaluated(kind, body, f"{len(where)}xi64", where)
    assert [found.result(6, (row,)) for row in range(len(where))] == [max(p, 0) for p in where]


@pytest.mark.parametrize("kind", NARROW)
def test_dynamic_slice(kind: str) -> None:
    body = f"%out = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<{SIZE}xi64>, tensor<{kind}>) -> tensor<2xi64>"
    for position in positions(kind):
        found = evaluated(kind, body, "2xi64", position)
        assert [found.result(1, (i,)) for i in range(2)] == [max(position, 0), max(position, 0) + 1]


@pytest.mark.parametrize("kind", NARROW)
def test_dynamic_update_slice(kind: str) -> None:
    body = f"""%out = stablehlo.dynamic_update_slice %x, %u, %i
        : (tensor<{SIZE}xi64>, tensor<2xi64>, tensor<{kind}>) -> tensor<{SIZE}xi64>"""
    for position in positions(kind):
        found, start = evaluated(kind, body, f"{SIZE}xi64", position), max(position, 0)
        for g in range(max(start - 1, 0), start + 3):
            wanted = -1 - (g - start) if start <= g < start + 2 else g
            assert found.result(g // TILE, (g % TILE,)) == wanted


@pytest.mark.parametrize("kind", NARROW)
def test_scatter(kind: str) -> None:
    """Negative positions are dropped."""
    first, second = positions(kind)[0], positions(kind)[-1]
    body = f"""%out = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}}> ({{
        ^bb0(%p: tensor<i64>, %q: tensor<i64>):
          stablehlo.return %q : tensor<i64>
        }}) : (tensor<{SIZE}xi64>, tensor<2x1x{kind}>, tensor<2xi64>) -> tensor<{SIZE}xi64>"""
    found = evaluated(kind, body, f"{SIZE}xi64", [first, second])
    expected = {g: g for p in (0, first, second) for g in (p - 1, p, p + 1) if g >= 0} | {second: -2}
    expected |= {first: -1} if first >= 0 else {}
    assert {g: found.result(g // TILE, (g % TILE,)) for g in expected} == expected
